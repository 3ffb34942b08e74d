// Compares runs of the suite behind Capstan with the direct run.
//
//     compare.mjs NAME REVISION SCENARIOS KNOWN DIRECT WAY=FOLDER...
//
// SCENARIOS has lines `required NAME` and `unscored NAME`; KNOWN has lines `NAME REVISION WAY SCENARIO`, in which `*`
// stands for any. Writes a line for each scenario. A scenario that passes directly must pass every check behind
// Capstan that it passes directly. Ends with the line `counts PASSED FAILED KNOWN ABSENT` for the script.
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

const [name, revision, scenarioFile, knownFile, direct, ...rest] = process.argv.slice(2);
const ways = rest.map((way) => way.split("="));
const lines = (file) => readFileSync(file, "utf8").split("\n").filter(Boolean);
const known = lines(knownFile).map((line) => line.split(" "));
const counts = { passed: 0, FAILED: 0, known: 0, absent: 0 };

/** The checks of a scenario: status and message by id; the worst counts where an id is there twice. */
function checks(folder, scenario) {
  const found = new Map();
  if (!existsSync(folder)) return found;
  const day = /^\d{4}-\d{2}-\d{2}T/;
  const prefix = `server-${scenario}-`;
  for (const entry of readdirSync(folder)) {
    const file = join(folder, entry, "checks.json");
    const isOfIt = entry.startsWith(prefix) && day.test(entry.slice(prefix.length));
    if (!isOfIt || !existsSync(file)) continue;
    for (const { id, status, errorMessage } of JSON.parse(readFileSync(file, "utf8"))) {
      if (found.get(id)?.status !== "FAILURE") found.set(id, { status, errorMessage });
    }
  }
  return found;
}

const of = (found, status) => [...found.values()].filter((check) => check.status === status).length;
const told = (found) => `${of(found, "SUCCESS")} passed, ${of(found, "FAILURE")} failed`;

/** Lines about the checks that pass directly and not this way. What the suite only notes is as good as passed. */
function lost(before, after) {
  const wrong = [];
  for (const [id, { status }] of before) {
    if (status !== "SUCCESS" || ["SUCCESS", "INFO"].includes(after.get(id)?.status)) continue;
    const { status: found = "not run", errorMessage = "" } = after.get(id) ?? {};
    wrong.push(`${found} ${id} ${errorMessage}`);
  }
  for (const [id, { status, errorMessage }] of after) {
    if (status === "FAILURE" && !before.has(id)) wrong.push(`${status} ${id} ${errorMessage ?? ""}`);
  }
  // What the suite did not get to says less than why it did not.
  const reasons = wrong.filter((line) => !/^(not run|SKIPPED)/.test(line));
  return reasons.length ? reasons : wrong;
}

/** Whether the lists say that a scenario fails this way. */
function isKnown(way, scenario) {
  const found = [name, revision, way, scenario];
  return known.some((row) => row.every((word, at) => word === "*" || word === found[at]));
}

/** Prints the line of a scenario, and what is wrong; how it ended. */
function judge(scenario) {
  const before = checks(direct, scenario);
  if (of(before, "SUCCESS") === 0 || of(before, "FAILURE") > 0) {
    // The server itself does not have it, so there is nothing to carry.
    console.log(`absent  ${scenario}: directly ${told(before)}`);
    return "absent";
  }
  let ended = "passed";
  const about = [];
  for (const [way, folder] of ways) {
    const wrong = lost(before, checks(folder, scenario));
    const fails = wrong.length !== 0;
    if (!fails && isKnown(way, scenario)) wrong.push("passes, although a list in run.sh says that it fails");
    if (fails !== isKnown(way, scenario)) ended = "FAILED";
    else if (fails && ended === "passed") ended = "known";
    about.push(...wrong.map((line) => `        ${way}: ${line}`));
  }
  console.log(`${ended.padEnd(7)} ${scenario}: ${told(before)}`);
  if (ended === "FAILED") console.log(about.join("\n"));
  return ended;
}

const scenarios = lines(scenarioFile).map((line) => line.split(" "));
for (const [standing, scenario] of scenarios) {
  if (standing === "required") counts[judge(scenario)]++;
}
const unscored = scenarios.filter(([standing]) => standing === "unscored");
if (unscored.length) console.log("unscored:");
for (const [, scenario] of unscored) judge(scenario);
console.log(`counts ${Object.values(counts).join(" ")}`);
