use crate::output::Output;

/// Rows under headings, each column as wide as its widest cell.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

/// A heading, and on which side the cells under it stand.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Column {
    /// Text.
    Left(&'static str),
    /// Numbers.
    Right(&'static str),
}

impl Table {
    /// A table with these columns and no rows.
    pub(crate) fn new(columns: impl Into<Vec<Column>>) -> Self {
        Self { columns: columns.into(), rows: Vec::new() }
    }

    /// Adds a row with one cell a column.
    pub(crate) fn row(&mut self, cells: impl Into<Vec<String>>) {
        self.rows.push(cells.into());
    }

    /// Writes it.
    pub(crate) fn write(&self, output: &mut Output) -> anyhow::Result<()> {
        let mut lines = self.lines().into_iter();
        if let Some(heading) = lines.next() {
            let heading = output.paint().bold(&heading);
            output.line(heading)?;
        }
        lines.try_for_each(|line| output.line(line))
    }

    /// It line by line, the headings first.
    pub(crate) fn lines(&self) -> Vec<String> {
        let headings: Vec<String> = self.columns.iter().map(|column| column.heading().to_owned()).collect();
        let all = || std::iter::once(&headings).chain(&self.rows);
        let width =
            |index: usize| all().map(|row: &Vec<String>| row[index].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        all().map(|row| self.aligned(row, &widths)).collect()
    }

    fn aligned(&self, row: &[String], widths: &[usize]) -> String {
        let cells = row.iter().zip(&self.columns).zip(widths).map(|((cell, column), width)| match column {
            Column::Left(_) => format!("{cell:<width$}"),
            Column::Right(_) => format!("{cell:>width$}"),
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        line.trim_end().to_owned()
    }
}

impl Column {
    const fn heading(self) -> &'static str {
        match self {
            Self::Left(heading) | Self::Right(heading) => heading,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new([Column::Left("KEY"), Column::Right("REVISION"), Column::Left("VALUE")]);
        table.row(["a.long.key".into(), "7".into(), "é".into()]);
        table.row(["b".into(), "123456789".into(), String::new()]);
        assert_eq!(
            table.lines(),
            ["KEY          REVISION  VALUE", "a.long.key          7  é", "b           123456789"]
        );
    }
}
