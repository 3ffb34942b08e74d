//! A few verbs of Chinese and Japanese, the languages of many servers' descriptions.

/// The effect at the beginning of a description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VerbEffect {
    /// It changes something.
    Writes(&'static str),
    /// It reads.
    Reads(&'static str),
}

const WRITES: [&str; 51] = [
    "创建", "删除", "更新", "修改", "写入", "发送", "添加", "上传", "执行", "移除", "新增", "编辑",
    "保存", "取消", "启动", "停止", "安装", "设置", "作成", "削除", "追加", "送信", "変更", "実行",
    "发布", "提交", "修复", "替换", "复制", "关闭", "启用", "禁用", "清空", "清除", "支付", "转账",
    "点击", "绑定", "导入", "订阅", "回复", "分配", "部署", "重启", "合并", "撤销", "恢复", "授权",
    "下单", "投稿", "登録",
];

const READS: [&str; 19] = [
    "获取", "查询", "搜索", "列出", "检索", "查看", "返回", "读取", "查找", "取得", "検索", "表示",
    "显示", "分析", "浏览", "统计", "推荐", "识别", "检查",
];

/// Number of characters that are examined.
const BEGINNING: usize = 40;

/// Characters after which a second verb follows.
const JOINTS: [char; 10] = ['并', '且', '和', '或', '与', '、', '后', '及', '，', ','];

/// Parses the beginning of a text: the first verb, and a verb of change that is joined to it.
pub(super) fn read(text: &str) -> Option<VerbEffect> {
    let beginning: String = text.chars().take(BEGINNING).collect();
    let places = |words: &'static [&'static str]| {
        let place = |word: &'static str| Some((beginning.find(word)?, word));
        words.iter().filter_map(move |word| place(word)).collect::<Vec<_>>()
    };
    let reads = places(&READS).into_iter().min();
    let mut writes = places(&WRITES);
    writes.sort_unstable();
    let is_joined = |at: usize| beginning.get(..at).is_some_and(|text| text.ends_with(JOINTS));
    let counts = |at: usize| is_joined(at) || reads.is_none_or(|(first, _)| at < first);
    let writes = writes.into_iter().find(|(at, _)| counts(*at));
    writes
        .map(|(_, word)| VerbEffect::Writes(word))
        .or(reads.map(|(_, word)| VerbEffect::Reads(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_verb_counts_and_a_change_that_is_joined_to_it() {
        assert_eq!(read("获取天气"), Some(VerbEffect::Reads("获取")));
        assert_eq!(read("查询并删除记录"), Some(VerbEffect::Writes("删除")));
        assert_eq!(read("获取文档的更新时间"), Some(VerbEffect::Reads("获取")));
        assert_eq!(read("创建并返回查询"), Some(VerbEffect::Writes("创建")));
        assert_eq!(read("weather"), None);
    }
}
