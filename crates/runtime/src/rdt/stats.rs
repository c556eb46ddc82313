//! What resctrl tells about a container, in the members of `events --stats`.

use std::path::Path;
use std::str::FromStr;

use brig_cgroup::stats::{CmtStats, IntelRdt, L3CacheInfo, MbmStats, MemBwInfo};

use super::{Groups, root};

impl Groups {
    /// What the class is limited to and, where there is a monitoring group, what is used. What the kernel does not tell is left
    /// out.
    pub fn stats(&self) -> IntelRdt {
        root().map_or_else(IntelRdt::default, |root| self.stats_below(&root))
    }

    fn stats_below(&self, root: &Path) -> IntelRdt {
        let info = root.join("info");
        let all = schemata(&self.class);
        let (l3_root, bandwidth_root) = classic(&schemata(root));
        let (l3_cache_schema, mem_bw_schema) = classic(&all);
        let mut stats = IntelRdt {
            l3_cache_info: info.join("L3").exists().then(|| L3CacheInfo {
                cbm_mask: text(&info.join("L3/cbm_mask")).unwrap_or_default(),
                min_cbm_bits: number(&info.join("L3/min_cbm_bits")),
                num_closids: number(&info.join("L3/num_closids")),
            }),
            l3_cache_schema_root: l3_root,
            l3_cache_schema,
            mem_bw_info: info.join("MB").exists().then(|| MemBwInfo {
                bandwidth_gran: number(&info.join("MB/bandwidth_gran")),
                delay_linear: number(&info.join("MB/delay_linear")),
                min_bandwidth: number(&info.join("MB/min_bandwidth")),
                num_closids: number(&info.join("MB/num_closids")),
            }),
            mem_bw_schema_root: bandwidth_root,
            mem_bw_schema,
            schemata: all,
            ..IntelRdt::default()
        };
        if let Some(group) = &self.monitoring {
            monitored(&info, group, &mut stats);
        }
        stats
    }
}

/// The numbers of each node, in the order of the nodes.
fn monitored(info: &Path, group: &Path, stats: &mut IntelRdt) {
    let features = text(&info.join("L3_MON/mon_features")).unwrap_or_default();
    let has = |feature: &str| features.lines().any(|line| line == feature);
    let nodes = std::fs::read_dir(group.join("mon_data")).into_iter().flatten();
    let mut nodes: Vec<_> = nodes.filter_map(|node| Some(node.ok()?.path())).collect();
    nodes.retain(|node| node.file_name().is_some_and(|name| name.to_string_lossy().starts_with("mon_L3_")));
    nodes.sort_unstable();
    if has("mbm_total_bytes") || has("mbm_local_bytes") {
        let of = |node: &std::path::PathBuf| MbmStats {
            mbm_total_bytes: number(&node.join("mbm_total_bytes")),
            mbm_local_bytes: number(&node.join("mbm_local_bytes")),
        };
        stats.mbm_stats = Some(nodes.iter().map(of).collect());
    }
    if has("llc_occupancy") {
        let of = |node: &std::path::PathBuf| CmtStats { llc_occupancy: number(&node.join("llc_occupancy")) };
        stats.cmt_stats = Some(nodes.iter().map(of).collect());
    }
}

fn schemata(group: &Path) -> Vec<String> {
    let text = text(&group.join("schemata")).unwrap_or_default();
    text.lines().map(|line| line.trim().to_owned()).collect()
}

/// The lines about the L3 cache and about memory bandwidth.
fn classic(schemata: &[String]) -> (String, String) {
    let of = |resource: &str| {
        let is_it = |line: &&String| line.split(':').next() == Some(resource);
        schemata.iter().find(is_it).cloned().unwrap_or_default()
    };
    (of("L3"), of("MB"))
}

fn text(file: &Path) -> Option<String> {
    std::fs::read_to_string(file).ok().map(|text| text.trim().to_owned())
}

fn number(file: &Path) -> u64 {
    text(file).and_then(|text| u64::from_str(&text).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        let dir = path.parent().unwrap();
        #[allow(clippy::disallowed_methods, reason = "a test")]
        std::fs::create_dir_all(dir).unwrap();
        #[allow(clippy::disallowed_methods, reason = "a test")]
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn all_that_there_is() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for (path, text) in [
            ("info/L3/cbm_mask", "fff\n"),
            ("info/L3/min_cbm_bits", "2\n"),
            ("info/L3/num_closids", "16\n"),
            ("info/MB/bandwidth_gran", "10\n"),
            ("info/MB/delay_linear", "1\n"),
            ("info/MB/min_bandwidth", "10\n"),
            ("info/MB/num_closids", "8\n"),
            ("info/L3_MON/mon_features", "llc_occupancy\nmbm_total_bytes\nmbm_local_bytes\n"),
            ("schemata", "    L3:0=fff;1=fff\n    MB:0=100;1=100\n"),
            ("c1/schemata", "    L3:0=00f;1=fff\n    MB:0= 50;1=100\n"),
            ("c1/mon_groups/c1/mon_data/mon_L3_00/llc_occupancy", "1\n"),
            ("c1/mon_groups/c1/mon_data/mon_L3_00/mbm_total_bytes", "2\n"),
            ("c1/mon_groups/c1/mon_data/mon_L3_00/mbm_local_bytes", "3\n"),
            ("c1/mon_groups/c1/mon_data/mon_L3_01/llc_occupancy", "4\n"),
            ("c1/mon_groups/c1/mon_data/mon_L3_01/mbm_total_bytes", "Unavailable\n"),
            ("c1/mon_groups/c1/mon_data/mon_L3_01/mbm_local_bytes", "6\n"),
        ] {
            file(root, path, text);
        }
        let mut groups = Groups { class: root.join("c1"), own: true, monitoring: None };
        let stats = groups.stats_below(root);
        assert_eq!(
            serde_json::to_string(&stats).unwrap(),
            r#"{"l3_cache_info":{"cbm_mask":"fff","min_cbm_bits":2,"num_closids":16},"l3_cache_schema_root":"L3:0=fff;1=fff","l3_cache_schema":"L3:0=00f;1=fff","mem_bw_info":{"bandwidth_gran":10,"delay_linear":1,"min_bandwidth":10,"num_closids":8},"mem_bw_schema_root":"MB:0=100;1=100","mem_bw_schema":"MB:0= 50;1=100","schemata":["L3:0=00f;1=fff","MB:0= 50;1=100"]}"#
        );
        groups.monitoring = Some(root.join("c1/mon_groups/c1"));
        let stats = groups.stats_below(root);
        assert_eq!(
            serde_json::to_string(&(stats.mbm_stats, stats.cmt_stats)).unwrap(),
            r#"[[{"mbm_total_bytes":2,"mbm_local_bytes":3},{"mbm_total_bytes":0,"mbm_local_bytes":6}],[{"llc_occupancy":1},{"llc_occupancy":4}]]"#
        );
    }
}
