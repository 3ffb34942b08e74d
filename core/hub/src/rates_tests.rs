//! Tests of rates: which calls they admit, when, and for which callers.

use capstan_policy::RateBy;

use super::*;

const MINUTE: Duration = Duration::from_mins(1);

fn rate(limit: u32, by: RateBy) -> Rate {
    Rate { limit, every: MINUTE, by, tools: Vec::new(), reason: None }
}

fn at(seconds: u64) -> Duration {
    // Not at zero: the clock starts with the process, and calls come later.
    Duration::from_secs(1000 + seconds)
}

/// Counts a call under this key of the first rate, if the rate allows it.
fn asks(rates: &Rates, key: &str, now: Duration) -> Result<(), u64> {
    let (number, rate) = rates.rates.first().unwrap();
    match rates.count(vec![((*number, key.to_owned()), rate)], now, || Ok(())) {
        Ok(()) => Ok(()),
        Err(CallError::RateExceeded { free_in, .. }) => Err(free_in.as_secs()),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn a_rate_is_used_up_and_frees_itself_when_its_calls_are_old_enough() {
    let rates = Rates::new(vec![rate(2, RateBy::Caller)]);
    for (second, expected) in [
        (0, Ok(())),
        (30, Ok(())),
        (30, Err(30)),
        (59, Err(1)),
        (60, Ok(())),
        (60, Err(30)),
        (89, Err(1)),
        (90, Ok(())),
        (91, Err(29)),
        (500, Ok(())),
        (500, Ok(())),
        (500, Err(60)),
    ] {
        assert_eq!(asks(&rates, "ann", at(second)), expected, "second {second}");
    }
}

#[test]
fn what_is_counted_apart_does_not_get_into_each_others_way() {
    let rates = Rates::new(vec![rate(1, RateBy::Caller)]);
    assert_eq!(asks(&rates, "ann", at(0)), Ok(()));
    assert_eq!(asks(&rates, "bob", at(0)), Ok(()));
    assert_eq!(asks(&rates, "ann", at(1)), Err(59));
}

#[test]
fn no_stretch_of_time_sees_more_than_the_limit_however_the_calls_come() {
    let rates = Rates::new(vec![rate(10, RateBy::All)]);
    let mut admitted: Vec<Duration> = Vec::new();
    let mut now = at(0);
    // A step that hits the beginnings and the ends of groups.
    for step in 0..5000_u32 {
        now += Duration::from_millis(u64::from(step * 7919 % 1777));
        if asks(&rates, "", now).is_ok() {
            admitted.push(now);
        }
    }
    assert!(admitted.len() > 500, "{}", admitted.len());
    for window in admitted.windows(11) {
        assert!(window[10] >= window[0] + MINUTE, "{window:?}");
    }
}

#[test]
fn threads_that_race_never_get_more_than_the_limit() {
    let rates = Rates::new(vec![rate(100, RateBy::All)]);
    let admitted: usize = std::thread::scope(|scope| {
        let race = || (0..2000).filter(|_| asks(&rates, "", at(0)).is_ok()).count();
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(race)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(admitted, 100);
}

#[test]
fn a_call_that_one_rate_or_the_quota_refuses_costs_nothing_at_the_others() {
    let rates = Rates::new(vec![rate(2, RateBy::All), rate(1, RateBy::Caller)]);
    let call = |quota: Result<(), CallError>| {
        let keys = rates.rates.iter().map(|(number, rate)| ((*number, String::new()), rate));
        rates.count(keys.collect(), at(0), || quota)
    };
    assert!(call(Err(CallError::QuotaExceeded { limit: 0 })).is_err());
    assert!(call(Ok(())).is_ok());
    for _ in 0..5 {
        let refused = call(Ok(())).unwrap_err().to_string();
        assert_eq!(refused, "the rate of 1 call in 60s for this caller is used up");
    }
    // Only one place of the first rate is taken.
    assert_eq!(asks(&rates, "", at(1)), Ok(()));
    assert_eq!(asks(&rates, "", at(1)), Err(59));
}

#[test]
fn only_so_many_counters_are_kept_and_those_in_use_stay() {
    let rates = Rates::new(vec![rate(1, RateBy::Caller)]);
    let keys = MAX_COUNTERS * 3;
    for key in 0..keys {
        let now = at(0) + Duration::from_millis(key as u64 / 1000);
        assert_eq!(asks(&rates, &key.to_string(), now), Ok(()));
        assert!(rates.counters.lock().unwrap().len() <= MAX_COUNTERS);
    }
    let newest = (keys - 1).to_string();
    assert!(asks(&rates, &newest, at(1)).is_err());
    let kept = rates.counters.lock().unwrap().len();
    assert!(kept >= MAX_COUNTERS * 9 / 10, "no more go than must: {kept}");
}

#[test]
fn a_rate_of_none_lets_nothing_through() {
    let rates = Rates::new(vec![rate(0, RateBy::All)]);
    assert_eq!(asks(&rates, "", at(0)), Err(60));
}

#[test]
fn calls_in_quick_succession_take_little_memory() {
    let rates = Rates::new(vec![rate(1_000_000, RateBy::All)]);
    for step in 0..100_000 {
        asks(&rates, "", at(0) + Duration::from_millis(step)).unwrap();
    }
    let groups = rates.counters.lock().unwrap().values().map(|counter| counter.groups.len()).max();
    assert!(groups <= Some(GROUPS as usize + 2), "{groups:?}");
}

#[test]
fn a_rate_that_is_kept_goes_on_counting_and_one_that_is_new_begins_anew() {
    let before = Rates::new(vec![rate(1, RateBy::Caller), rate(2, RateBy::All)]);
    assert_eq!(asks(&before, "ann", at(0)), Ok(()));
    // In another order, with one more rate.
    let after = before.then(vec![rate(5, RateBy::Tool), rate(1, RateBy::Caller)]);
    let (number, kept) = after.rates.last().unwrap();
    let again = || after.count(vec![((*number, "ann".to_owned()), kept)], at(0), || Ok(()));
    assert!(again().is_err(), "the place was taken before");
    assert_eq!(asks(&after, "ann", at(0)), Ok(()), "this one is new");
    // A call in flight during the change counts for both.
    assert!(asks(&before, "ann", at(0)).is_err());
    let wider = before.then(vec![rate(3, RateBy::Caller)]);
    assert_eq!(asks(&wider, "ann", at(0)), Ok(()), "another number is another rate");
}
