//! How values are written into tokens, each in a form whose bytes sort as the values do.

/// The bytes of a token, as `pleach_engine::Key` takes them.
pub(super) fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'/' | b'_' | b'=')
}

/// The bytes of a slug. All of them sort after the dot that ends a token, which `-` does not.
pub(super) fn is_slug_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Crockford's digits, which ULIDs are written in: no I, L, O, U.
const CROCKFORD: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/// The digits of binary values: 64 that keys take, in the order of ASCII, all after the dot.
const SIXTY_FOUR: &[u8; 64] = b"0123456789=ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";
const HEXADECIMAL: &[u8; 16] = b"0123456789abcdef";
const NO_DIGIT: u8 = 0xff;

const CROCKFORD_VALUES: [u8; 256] = values_of(CROCKFORD);
const SIXTY_FOUR_VALUES: [u8; 256] = values_of(SIXTY_FOUR);
const HEXADECIMAL_VALUES: [u8; 256] = values_of(HEXADECIMAL);

#[allow(clippy::cast_possible_truncation, reason = "there are at most 64 digits")]
const fn values_of(digits: &[u8]) -> [u8; 256] {
    let mut values = [NO_DIGIT; 256];
    let mut index = 0;
    while index < digits.len() {
        values[digits[index] as usize] = index as u8;
        index += 1;
    }
    values
}

fn digit(values: &[u8; 256], byte: u8) -> Option<u8> {
    Some(values[usize::from(byte)]).filter(|value| *value != NO_DIGIT)
}

pub(super) const ULID_BYTES: usize = 26;
pub(super) const UUID_BYTES: usize = 36;

/// Pushes digits at once, which is quicker than one by one.
fn push_ascii(into: &mut String, digits: &[u8]) {
    if let Ok(text) = std::str::from_utf8(digits) {
        into.push_str(text);
    }
}

pub(super) fn push_ulid(into: &mut String, ulid: u128) {
    let mut digits = [b'0'; ULID_BYTES];
    let mut left = ulid;
    // 26 digits of 5 bits are 130: the first is at most 7.
    for digit in digits.iter_mut().rev() {
        *digit = CROCKFORD[usize::try_from(left & 31).unwrap_or(0)];
        left >>= 5;
    }
    push_ascii(into, &digits);
}

pub(super) fn read_ulid(token: &str) -> Option<u128> {
    if token.len() != ULID_BYTES || token.as_bytes()[0] > b'7' {
        return None;
    }
    token.bytes().try_fold(0_u128, |ulid, byte| Some(ulid << 5 | u128::from(digit(&CROCKFORD_VALUES, byte)?)))
}

pub(super) fn push_uuid(into: &mut String, uuid: u128) {
    for (index, byte) in uuid.to_be_bytes().into_iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            into.push('-');
        }
        push_hexadecimal_byte(into, byte);
    }
}

pub(super) fn read_uuid(token: &str) -> Option<u128> {
    if token.len() != UUID_BYTES {
        return None;
    }
    token.bytes().enumerate().try_fold(0_u128, |uuid, (index, byte)| match index {
        8 | 13 | 18 | 23 => (byte == b'-').then_some(uuid),
        _ => Some(uuid << 4 | u128::from(digit(&HEXADECIMAL_VALUES, byte)?)),
    })
}

pub(super) fn push_hexadecimal(into: &mut String, bytes: &[u8]) {
    bytes.iter().for_each(|byte| push_hexadecimal_byte(into, *byte));
}

fn push_hexadecimal_byte(into: &mut String, byte: u8) {
    into.push(char::from(HEXADECIMAL[usize::from(byte >> 4)]));
    into.push(char::from(HEXADECIMAL[usize::from(byte & 15)]));
}

pub(super) fn read_hexadecimal(token: &str) -> Option<Vec<u8>> {
    if !token.len().is_multiple_of(2) {
        return None;
    }
    let pairs = token.as_bytes().chunks_exact(2);
    pairs
        .map(|pair| Some(digit(&HEXADECIMAL_VALUES, pair[0])? << 4 | digit(&HEXADECIMAL_VALUES, pair[1])?))
        .collect()
}

/// Six bits a digit, the first bits first, with zeros after the last. A longer value has more digits than what it
/// begins with, so it sorts after it.
pub(super) fn push_sixty_four(into: &mut String, bytes: &[u8]) {
    for chunk in bytes.chunks(3) {
        let mut three = [0; 3];
        three[..chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes([0, three[0], three[1], three[2]]);
        for place in 0..=chunk.len() {
            let six = (bits >> (18 - 6 * place)) & 63;
            into.push(char::from(SIXTY_FOUR[usize::try_from(six).unwrap_or(0)]));
        }
    }
}

pub(super) fn read_sixty_four(token: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(token.len() * 3 / 4);
    for chunk in token.as_bytes().chunks(4) {
        let mut bits = 0_u32;
        for place in 0..4 {
            let six = chunk.get(place).map_or(Some(0), |byte| digit(&SIXTY_FOUR_VALUES, *byte))?;
            bits = bits << 6 | u32::from(six);
        }
        let [_, three @ ..] = bits.to_be_bytes();
        // One digit is no byte, and bits after the last byte would give a value a second form.
        let length = chunk.len() - 1;
        if length == 0 || three[length..].iter().any(|byte| *byte != 0) {
            return None;
        }
        bytes.extend_from_slice(&three[..length]);
    }
    Some(bytes)
}

/// How many digits so many bytes take.
pub(super) const fn sixty_four_bytes(bytes: usize) -> usize {
    (bytes * 8).div_ceil(6)
}

pub(super) fn push_digits(into: &mut String, number: u64, digits: usize) {
    let mut buffer = [b'0'; 20];
    let mut left = number;
    for place in buffer.iter_mut().rev() {
        if left == 0 {
            break;
        }
        *place = b'0' + u8::try_from(left % 10).unwrap_or(0);
        left /= 10;
    }
    push_ascii(into, &buffer[buffer.len().saturating_sub(digits)..]);
}

/// Reads decimal digits and nothing else. None if there are none, or the number is too large.
pub(super) fn read_digits(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |number, byte| {
        let digit = Some(byte).filter(|byte| byte.is_ascii_digit())? - b'0';
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// The largest number of so many digits, at most 20.
pub(super) fn largest(digits: u8) -> u64 {
    10_u64.checked_pow(u32::from(digits)).map_or(u64::MAX, |power| power - 1)
}

/// `0` and the digits; below zero `-` and what is left to the next power of ten, so that -1 sorts after -2.
pub(super) fn push_int(into: &mut String, number: i64, digits: u8) {
    let width = usize::from(digits);
    if number < 0 {
        into.push('-');
        push_digits(into, largest(digits) - number.unsigned_abs() + 1, width);
    } else {
        into.push('0');
        push_digits(into, number.unsigned_abs(), width);
    }
}

pub(super) fn read_int(token: &str, digits: u8) -> Option<i64> {
    if token.len() != usize::from(digits) + 1 {
        return None;
    }
    let (sign, rest) = token.as_bytes().split_first()?;
    let number = read_digits(rest)?;
    match sign {
        b'0' => i64::try_from(number).ok(),
        b'-' if number > 0 => 0_i64.checked_sub_unsigned(largest(digits) - number + 1),
        _ => None,
    }
}
