//! Small pictures of numbers in a line of text.

/// How pictures are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chart {
    /// With blocks, for terminals.
    Blocks,
    /// With letters that every program can show.
    Plain,
}

const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const PLAIN: [char; 8] = ['_', '.', ',', '-', '=', '+', '*', '#'];

impl Chart {
    /// A bar of `width` letters, of which `share` (from 0 to 1) is full.
    pub(crate) fn bar(self, share: f64, width: usize) -> String {
        let (full, empty) = if self == Self::Blocks { ('█', '░') } else { ('#', '.') };
        let filled = (0..width).filter(|at| share * width as f64 >= *at as f64 + 0.5).count();
        let mut bar = String::new();
        bar.extend(std::iter::repeat_n(full, filled));
        bar.extend(std::iter::repeat_n(empty, width - filled));
        bar
    }

    /// A letter for each of the newest `width` numbers, as high as they are compared with the largest. Where there is
    /// nothing to be seen, nothing is shown.
    pub(crate) fn line(self, numbers: &[f64], width: usize) -> String {
        let letters = if self == Self::Blocks { BLOCKS } else { PLAIN };
        let shown = &numbers[numbers.len().saturating_sub(width)..];
        let largest = shown.iter().copied().fold(0.0, f64::max);
        if largest <= 0.0 {
            return String::new();
        }
        let letter = |number: &f64| {
            // The lowest letter is for nothing at all.
            let above =
                (1..letters.len()).filter(|step| *number / largest * 7.0 > *step as f64 - 1.0).count();
            letters[above]
        };
        shown.iter().map(letter).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_full_as_what_they_show() {
        assert_eq!(Chart::Blocks.bar(0.5, 4), "██░░");
        assert_eq!(Chart::Plain.bar(0.24, 4), "#...");
        assert_eq!((Chart::Plain.bar(0.0, 3), Chart::Plain.bar(9.0, 3)), ("...".into(), "###".into()));
    }

    #[test]
    fn lines_rise_and_fall_with_the_numbers_and_show_the_newest() {
        assert_eq!(Chart::Blocks.line(&[9.0, 0.0, 1.0, 3.5, 7.0], 4), "▁▂▅█");
        assert_eq!(Chart::Plain.line(&[0.0, 7.0], 8), "_#");
        assert_eq!(Chart::Plain.line(&[0.0, 0.0], 8), "");
        assert_eq!(Chart::Plain.line(&[], 8), "");
    }
}
