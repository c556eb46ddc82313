//! A bar chart of medians as SVG.

use std::fmt::Write;

use crate::rows::{Row, Sample};
use crate::runtime::Kind;
use crate::stats::spread;

const LEFT: f64 = 150.0;
const WIDTH: f64 = 480.0;
const BAR: f64 = 16.0;

fn colour(kind: Kind) -> &'static str {
    match kind {
        Kind::Brig => "#c1440e",
        Kind::Floor => "#777777",
        Kind::Crun => "#3b6ea5",
        Kind::CrunUncached => "#8fb1d6",
        Kind::Runc => "#4c9a6a",
    }
}

/// Wall times of all rows; the line on a bar goes from one quartile to the other.
pub fn svg(rows: &[Row]) -> String {
    let spreads: Vec<_> = rows
        .iter()
        .map(|row| {
            let series = row.series.iter();
            (row.name, series.map(|s| (s.kind, spread(&s.values(Sample::wall)))).collect::<Vec<_>>())
        })
        .collect();
    let longest = spreads.iter().flat_map(|(_, all)| all).map(|(_, spread)| spread.high).fold(1.0, f64::max);
    let scale = WIDTH / longest;
    let mut body = String::new();
    let mut y = 10.0;
    for (name, all) in &spreads {
        y += 18.0;
        let _ = writeln!(body, r#"<text x="10" y="{y}" font-weight="bold">{name}, ms</text>"#);
        y += 6.0;
        for (kind, spread) in all {
            let (middle, base) = (y + BAR / 2.0, y + BAR - 4.0);
            let _ = writeln!(
                body,
                r##"<text x="{}" y="{base}" text-anchor="end">{}</text>
<rect x="{LEFT}" y="{y}" width="{:.1}" height="{}" fill="{}"/>
<line x1="{:.1}" x2="{:.1}" y1="{middle}" y2="{middle}" stroke="#000"/>
<text x="{:.1}" y="{base}">{:.2}</text>"##,
                LEFT - 6.0,
                kind.name(),
                spread.median * scale,
                BAR - 2.0,
                colour(*kind),
                LEFT + spread.low * scale,
                LEFT + spread.high * scale,
                LEFT + spread.high * scale + 6.0,
                spread.median,
            );
            y += BAR;
        }
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{body}</svg>\n",
        LEFT + WIDTH + 60.0,
        y + 14.0
    )
}
