import type { Stats } from "../../schema/stats.ts";
import { href } from "../app/route.ts";
import { Said } from "../ui/said.tsx";

/** The codes of failed and rejected delegations, as bars; each links to its delegations. */
export function Failures({ failures }: Pick<Stats["totals"], "failures">) {
  const most = failures[0]?.count ?? 1;
  return (
    <figure class="chart failures">
      <figcaption>
        <h2>Failures by code</h2>
        <b>{failures.length === 0 ? "none" : ""}</b>
      </figcaption>
      <ul>
        {failures.slice(0, SHOWN).map(({ code, count }) => (
          <li key={code}>
            {code === "other" ? <Said>{code}</Said> : <a href={href("find", { error_code: code })}>{code}</a>}
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
