//! Tables for people.

use std::borrow::Cow;

use crate::quote::visible;

/// Lays `rows` out in columns: left-aligned, three blanks between, each but the last at least twelve wide with
/// those. Scripts cut these tables by position, so the widths are runc's.
///
/// Cells show command lines and paths, which others wrote: see [`visible`].
pub fn text<const N: usize>(rows: &[[String; N]]) -> String {
    let rows: Vec<[Cow<'_, str>; N]> =
        rows.iter().map(|row| row.each_ref().map(|cell| visible(cell))).collect();
    const GAP: usize = 3;
    const MIN: usize = 12;
    let width = |column: usize| {
        let longest = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
        MIN.max(longest.unwrap_or(0) + GAP)
    };
    let widths: [usize; N] = std::array::from_fn(width);
    let mut out = String::new();
    for row in &rows {
        for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
            out.push_str(cell);
            if column + 1 < N {
                out.extend(std::iter::repeat_n(' ', width - cell.chars().count()));
            }
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn columns_are_padded() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned);
        assert_eq!(text::<3>(&[]), "");
        assert_eq!(text(&[row(["ID", "PID", "OWNER"])]), "ID          PID         OWNER\n");
        assert_eq!(
            text(&[
                row(["ID", "PID", "OWNER"]),
                row(["0123456789ab", "1", "root"]),
                row(["é23456789", "22", ""]),
            ]),
            "ID             PID         OWNER\n\
             0123456789ab   1           root\n\
             é23456789      22          \n"
        );
    }
}
