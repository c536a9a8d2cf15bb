/** The figures of the last hour or day, of everything that the reader may see or of one agent. */
import { Fragment } from "preact";
import { useEffect } from "preact/hooks";
import type { Stats, StatsBucket } from "../../schema/stats.ts";
import { agentNameSchema } from "../../schema/values.ts";
import { adopt } from "../app/adopt.ts";
import { go, href, hrefWith, route } from "../app/route.ts";
import { agents } from "../data/agents.ts";
import { seesAll } from "../session/rights.ts";
import { Empty } from "../ui/empty.tsx";
import { failureWords } from "../ui/failures.ts";
import { styles as headStyles } from "../ui/page-head.css";
import { Problem } from "../ui/problem.tsx";
import { Said } from "../ui/said.tsx";
import { StateMark } from "../ui/state-mark.tsx";
import { useLoaded } from "../ui/use-loaded.ts";
import { Chart } from "./chart.tsx";
import { styles } from "./charts.css";
import { TIMES } from "./scale.ts";

adopt(headStyles, styles);

const RELOAD_MS = 10_000;

export function Charts() {
  const { params } = route.value;
  const period = params.get("period") === "day" ? "day" : "hour";
  const target = agentNameSchema.safeParse(params.get("agent")).data;
  const { value, error, reload } = useLoaded(`${period} ${target ?? ""}`, ({ admin }, signal) =>
    admin.stats({ period, target }, { signal }),
  );
  useEffect(() => {
    const reloadShown = () => {
      if (!document.hidden) reload();
    };
    const timer = setInterval(reloadShown, RELOAD_MS);
    document.addEventListener("visibilitychange", reloadShown);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", reloadShown);
    };
  }, []);
  return (
    <section aria-labelledby="charts-title">
      <div class="charts-head">
        <h1 id="charts-title">Charts</h1>
        <nav class="tabs" aria-label="Period">
          <a href={hrefWith({ period: undefined })} aria-current={period === "hour" ? "page" : undefined}>
            Last hour
          </a>
          <a href={hrefWith({ period: "day" })} aria-current={period === "day" ? "page" : undefined}>
            Last day
          </a>
        </nav>
        {seesAll.value && <AgentChoice target={target} />}
      </div>
      {!seesAll.value && value !== null && (
        <p class="dim">{value.target === null ? "What you delegated." : `The work of ${value.target}.`}</p>
      )}
      <Problem error={error} />
      {value === null ? (
        error === null && <p class="loading">Reading the figures …</p>
      ) : (
        <Grid stats={value} />
      )}
    </section>
  );
}

function AgentChoice({ target }: { readonly target: string | undefined }) {
  const names = (agents.value ?? []).map(({ name }) => name);
  if (target !== undefined && !names.includes(target)) names.unshift(target);
  return (
    <select
      aria-label="Agent"
      value={target ?? ""}
      onChange={({ currentTarget }) => go(hrefWith({ agent: currentTarget.value || undefined }))}
    >
      <option value="">All agents</option>
      {names.map((name) => (
        <option key={name} value={name}>
          {name}
        </option>
      ))}
    </select>
  );
}

/** Whether nothing was delegated, ended, waited or worked. */
const isBlank = ({ buckets, totals }: Stats): boolean =>
  totals.sent + totals.completed + totals.failed + totals.rejected + totals.canceled === 0 &&
  buckets.every(({ waiting, working }) => !waiting && !working);

function Grid({ stats }: { readonly stats: Stats }) {
  const { buckets, totals, period } = stats;
  if (isBlank(stats)) {
    return (
      <Empty title={`Nothing happened in the last ${period}`}>
        Charts show how much is delegated and ends, how long the queue is and how long work takes, and why
        work fails.
      </Empty>
    );
  }
  const times = buckets.map(({ at }) => at);
  const each = period === "hour" ? "each minute" : "each quarter of an hour";
  const values = (pick: (bucket: StatsBucket) => number | null) => buckets.map(pick);
  const most = (pick: (bucket: StatsBucket) => number | null) =>
    Math.max(0, ...values(pick).map((value) => value ?? 0));
  const ended = totals.completed + totals.failed + totals.rejected + totals.canceled;
  const durations = (name: "time_to_lease" | "time_to_answer") =>
    ({
      kind: "lines",
      times,
      show: seconds,
      tops: TIMES,
      series: [
        {
          name: "median",
          look: "time",
          values: values((bucket) => bucket[name]?.median_seconds ?? null),
        },
        {
          name: "95th percentile",
          look: "time95",
          values: values((bucket) => bucket[name]?.p95_seconds ?? null),
        },
      ],
      sum: totals[name] === null ? "none" : `median ≈ ${seconds(totals[name].median_seconds)}`,
    }) as const;
  return (
    <>
      <Failed totals={totals} ended={ended} target={stats.target ?? undefined} />
      <div class="charts">
        <Chart
          title="Delegated"
          note={`in ${each}`}
          kind="bars"
          times={times}
          series={[{ name: "delegated", look: "sent", values: values(({ sent }) => sent) }]}
          sum={number(totals.sent)}
        />
        <Chart
          title="Ended"
          note={`in ${each}`}
          kind="bars"
          times={times}
          series={[
            { name: "completed", look: "completed", values: values(({ completed }) => completed) },
            {
              name: "failed or rejected",
              look: "failed",
              values: values((bucket) => bucket.failed + bucket.rejected),
            },
            { name: "canceled", look: "canceled", values: values(({ canceled }) => canceled) },
          ]}
          sum={number(ended)}
        />
        {stats.delegator === null && (
          <>
            <Chart
              title="Queue"
              note={`the highest number in ${each}`}
              kind="lines"
              times={times}
              series={[
                { name: "queued", look: "queued", values: values(({ waiting }) => waiting) },
                { name: "working", look: "working", values: values(({ working }) => working) },
              ]}
              sum={`highest: ${number(most(({ waiting }) => waiting))} queued`}
            />
            <Chart
              title="Longest wait"
              note={`in the queue, in ${each}`}
              kind="bars"
              times={times}
              show={seconds}
              tops={TIMES}
              series={[{ name: "age", look: "queued", values: values((bucket) => bucket.oldest_seconds) }]}
              sum={`highest: ${seconds(most((bucket) => bucket.oldest_seconds))}`}
            />
          </>
        )}
        <Chart
          title="Time to a worker"
          note="the wait in the queue; estimated"
          {...durations("time_to_lease")}
        />
        <Chart
          title="Time to completion"
          note="from its delegation to its end; estimated"
          {...durations("time_to_answer")}
        />
        <Failures failures={totals.failures} target={stats.target ?? undefined} />
      </div>
    </>
  );
}

const number = (value: number): string => value.toLocaleString("en");

/** `40 ms`, `1.2 s`, `3 min`. */
function seconds(value: number): string {
  if (value === 0) return "0 s";
  if (value < 1) return `${Math.round(value * 1000)} ms`;
  if (value < 60) return `${Math.round(value * 10) / 10} s`;
  return value < 3600 ? `${Math.round(value / 6) / 10} min` : `${Math.round(value / 360) / 10} h`;
}

/** At most so many reasons are named before the charts; all are in "Why work failed". */
const NAMED = 3;

interface FailedProps {
  readonly totals: Stats["totals"];
  readonly ended: number;
  readonly target: string | undefined;
}

/** First, because the charts of it are further down: `1 of 6 that ended failed: disk_full`. */
function Failed({ totals: { failed, rejected, failures }, ended, target }: FailedProps) {
  const bad = failed + rejected;
  if (bad === 0) return null;
  const more = failures.length - NAMED;
  return (
    <p class="state failed charts-failed">
      <StateMark phase="failed" />{" "}
      <b>
        {number(bad)} of {number(ended)}
      </b>{" "}
      that ended {rejected === 0 ? "failed" : failed === 0 ? "were rejected" : "failed or were rejected"}
      {failures.length > 0 && ": "}
      {failures.slice(0, NAMED).map(({ code, count }, index) => (
        <Fragment key={code}>
          {index > 0 && ", "}
          <Reason code={code} target={target} />
          {failures.length > 1 && ` (${number(count)})`}
        </Fragment>
      ))}
      {more > 0 && `, and ${number(more)} more reasons`}
    </p>
  );
}

interface FailuresProps extends Pick<Stats["totals"], "failures"> {
  /** The agent whose figures are shown. */
  readonly target: string | undefined;
}

/** Why delegations failed or were rejected, as bars; each links to its delegations. */
function Failures({ failures, target }: FailuresProps) {
  const most = failures[0]?.count ?? 1;
  return (
    <figure class="chart failures">
      <figcaption>
        <h2>Why work failed</h2>
        <b>{failures.length === 0 ? "none" : ""}</b>
      </figcaption>
      <ul>
        {failures.slice(0, SHOWN).map(({ code, count }) => (
          <li key={code}>
            <Reason code={code} target={target} />
            <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
              <rect class="bar failed" width={(100 * count) / most} height={8} />
            </svg>
            <b>{count.toLocaleString("en")}</b>
          </li>
        ))}
      </ul>
    </figure>
  );
}

const SHOWN = 12;

/** Links to the delegations that failed with the code. */
function Reason({ code, target }: { readonly code: string; readonly target: string | undefined }) {
  if (code === "other") return <Said>{code}</Said>;
  return (
    <a href={href("find", { error_code: code, target })} title={code}>
      {failureWords(code) ?? <Code text={code} />}
    </a>
  );
}

/** It may break after each word. */
function Code({ text }: { readonly text: string }) {
  return (
    <Said>
      {text.split(/(?<=_)/).map((part, index) => (
        <Fragment key={index}>
          {part}
          <wbr />
        </Fragment>
      ))}
    </Said>
  );
}
