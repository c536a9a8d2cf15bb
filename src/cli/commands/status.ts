/** `errand status`: one screen about the broker, its agents and what waits for you. */
import type { Command } from "commander";
import { usedText } from "../../client/period-budgets.ts";
import { durationText, largestUnit } from "../../client/words.ts";
import type { Stats } from "../../schema/stats.ts";
import type { GatewayStatus, RedisStatus } from "../../schema/status.ts";
import { type Cli, connectToRead, examples, type GlobalOptions } from "../context.ts";
import type { CliHost } from "../host.ts";
import { shortIds } from "../input/short-id.ts";
import { oneLine, painter, print, printJson, withCommand } from "../show/output.ts";
import { questionText } from "../show/questions.ts";
import { sizeText } from "../show/size.ts";
import { terminalWidth, wrapWidth } from "../show/terminal-width.ts";
import { cutTo, wrapText } from "../show/text.ts";
import { ageText, localTime } from "../show/time.ts";
import { votesLine } from "../show/votes.ts";
import { MAX_QUESTIONS, type Overview, overviewOf } from "../status/overview.ts";

const ABOUT = `
It shows what your token may see: only the operator and viewers see Redis, and callers see the figures of what they
delegated. Alarms say that a part of the storage is away, that new work is refused because memory is short, that work
waits for an agent that is paused or has no worker, that much work or for long waits for one whose workers are all busy,
or that this program and the broker differ in version. 'errand doctor' checks the setup.`;

export function addStatus(program: Command, { host }: Cli): void {
  program
    .command("status")
    .description("show the broker, its agents, the work, your open questions and alarms on one screen")
    .addHelpText("after", ABOUT)
    .addHelpText("after", examples("errand status", "errand status --json | jq .alarms"))
    .action(async (_options: unknown, command: Command) => {
      const options = command.optsWithGlobals<GlobalOptions>();
      const connection = await connectToRead(host, options);
      const overview = await overviewOf(connection, host.version);
      if (options.json) return printJson(host, overview);
      await show(host, connection.url ?? overview.url, overview);
    });
}

/** How many agents are named as offline. */
const NAMED = 3;
const LABEL_WIDTH = "questions".length + 2;

async function show(host: CliHost, url: string, overview: Overview): Promise<void> {
  const { bold, green, red, yellow } = painter(host, "stdout");
  const width = terminalWidth(host, "stdout");
  const row = async (label: string, text: string, paint = (line: string) => line) => {
    const space = width - LABEL_WIDTH;
    await print(
      host,
      bold(label.padEnd(LABEL_WIDTH)) + paint(cutTo(withCommand(host, oneLine(text)), space)),
    );
  };
  /** Nothing of it is cut: it goes on below itself, or without a terminal beyond the line. */
  const whole: Row = async (label, text, paint = (line) => line) => {
    const lines = wrapText(oneLine(text), wrapWidth(host) - LABEL_WIDTH).split("\n");
    for (const [at, line] of lines.entries())
      await print(host, bold((at === 0 ? label : "").padEnd(LABEL_WIDTH)) + paint(line));
  };
  const { version, broker_id, started_at, gateways, principal, budgets, redis, agents, work, alarms } =
    overview;
  await row("broker", `${url}, version ${version}`);
  await whole("id", broker_id);
  await row("started", `${ageText(started_at)} ago, ${localTime(started_at)}`);
  if (gateways) await row("gateways", gatewaysText(gateways), areReady(gateways) ? green : yellow);
  await row("you", principal);
  if (budgets) await row("budgets", usedText(budgets));
  if (redis) await row("redis", redisText(redis), green);
  await row("agents", agentsText(agents));
  const oldest = work.waiting > 0 && work.oldest_seconds !== null;
  const age = oldest ? `; oldest ${largestUnit(1000 * Number(work.oldest_seconds))}` : "";
  await row("work", counted(work, ["waiting", "delayed", "working", "asking", "awaiting"]) + age);
  await row("last hour", totalsText(overview.last_hour));
  await row("last day", totalsText(overview.last_day));
  await showQuestions(overview, row, yellow);
  if (alarms.length === 0) await row("alarms", "none", green);
  for (const [at, alarm] of alarms.entries()) await whole(at === 0 ? "alarms" : "", alarm, red);
}

const areReady = (gateways: readonly GatewayStatus[]): boolean =>
  gateways.every(({ state }) => state === "ready");

/** `2 of 2 ready`, and how often some ended unexpectedly. While they are replaced, old ones stop beside their successors. */
function gatewaysText(gateways: readonly GatewayStatus[]): string {
  const ready = gateways.filter(({ state }) => state === "ready").length;
  const restarts = gateways.reduce((sum, one) => sum + one.restarts, 0);
  const ended = restarts === 0 ? "" : `; ended unexpectedly: ${restarts}`;
  return `${ready} of ${gateways.length} ready${ended}`;
}

type Row = (label: string, text: string, paint?: (line: string) => string) => Promise<void>;

async function showQuestions(
  { questions, open_questions: open }: Overview,
  row: Row,
  paint: (line: string) => string,
): Promise<void> {
  if (questions.length === 0) return row("questions", "none for you");
  await row("questions", `${open}${open === MAX_QUESTIONS ? " or more" : ""} for you: 'errand inbox'`, paint);
  const short = shortIds(questions.map(({ id }) => id));
  for (const { id, target, interrupt, updated_at } of questions) {
    const votes = interrupt && votesLine(interrupt);
    const text = interrupt ? `${votes ? `(${votes}) ` : ""}${questionText(interrupt)}` : "";
    await row("", `${short.get(id) ?? id}  ${target}  ${ageText(updated_at)}  ${text}`);
  }
}

/** `3: online 1, not online 2 (busy, scout)` */
function agentsText({ total, polling, offline, paused, offline_names: names }: Overview["agents"]): string {
  const more = names.length > NAMED ? `, and ${names.length - NAMED} more` : "";
  const named = offline === 0 ? "" : `, not online ${offline} (${names.slice(0, NAMED).join(", ")}${more})`;
  return `${total}: online ${polling}${named}${paused === 0 ? "" : `, paused ${paused}`}`;
}

function redisText({
  product,
  version,
  source,
  latency_ms,
  used_memory_bytes,
  maxmemory_bytes,
}: RedisStatus) {
  const latency = durationText(Math.max(1, latency_ms));
  const used = sizeText(used_memory_bytes);
  const memory =
    maxmemory_bytes === 0 ? `${used} used, no limit` : `${used} of ${sizeText(maxmemory_bytes)} used`;
  return `${product} ${version}, ${source}, answers in ${latency}, ${memory}`;
}

/** `waiting 3, working 1`: those that are not 0, and the first one always. */
function counted<K extends string>(counts: Readonly<Record<K, number | null>>, names: readonly K[]): string {
  return names
    .filter((name, at) => at === 0 || counts[name] !== 0)
    .map((name) => `${name} ${counts[name]}`)
    .join(", ");
}

const totalsText = ({ sent, completed, failed, rejected, canceled }: Stats["totals"]): string =>
  `sent ${sent}; ended: ${counted({ completed, failed, rejected, canceled }, ["completed", "failed", "rejected", "canceled"])}`;
