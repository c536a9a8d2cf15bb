import type { ComponentChildren } from "preact";
import type { Message } from "../../schema/a2a.ts";
import type { Delegation } from "../../schema/delegation.ts";
import { hrefOf, hrefWith } from "../app/route.ts";
import type { ListedDelegation } from "../data/listed.ts";
import { delegatorOf } from "../session/rights.ts";
import { Age } from "../ui/age.tsx";
import { Fold } from "../ui/fold.tsx";
import { Output } from "../ui/output.tsx";
import { Problem } from "../ui/problem.tsx";
import { Said } from "../ui/said.tsx";
import { useLoaded } from "../ui/use-loaded.ts";
import { count, stepOf, taskText } from "../ui/words.ts";

/** Of files; the delegation itself shows all. */
const SHOWN = 10;

/** What a question is judged by: the task, the last report, the files, and what the work is a part of. */
export function About({ listed }: { readonly listed: ListedDelegation }) {
  const { value, error } = useLoaded(
    listed.id,
    ({ delegator }, signal) => delegator.get(listed.id, { signal }),
    listed.version,
  );
  return (
    <section class="about-work" aria-label="The work that asks">
      {value === null ? (
        error === null ? (
          <p class="loading">Reading the task …</p>
        ) : (
          <Problem error={error} />
        )
      ) : (
        <Facts delegation={value} />
      )}
    </section>
  );
}

/** Whether the question's own link to the task says all of it. */
const isShown = ({ parts }: Message, delegation: Delegation): boolean =>
  parts.length === 1 && parts[0]?.text !== undefined && parts[0].text.trim() === taskText(delegation);

function Facts({ delegation }: { readonly delegation: Delegation }) {
  const { id, message, created_at, attempt, artifacts, parent_id } = delegation;
  const report = stepOf(delegation);
  const isTaskShown = isShown(message, delegation);
  return (
    <dl>
      <Fact name={isTaskShown ? "Delegated" : "Task"}>
        <p class="dim">
          {isTaskShown ? "by" : "from"} {delegatorOf(delegation)}, <Age at={created_at} ago />
          {attempt > 1 && `, attempt ${attempt}`}
        </p>
        {!isTaskShown && (
          <Fold>
            <Output parts={message.parts} />
          </Fold>
        )}
      </Fact>
      {report !== "" && (
        <Fact name="Last report">
          <Said>{report}</Said>
        </Fact>
      )}
      {artifacts.length > 0 && (
        <Fact name="Files">
          <a href={hrefWith({ open: id, tab: "files" })}>{count(artifacts.length, "file")}</a>:{" "}
          <Said>
            {artifacts
              .slice(0, SHOWN)
              .map(({ name, artifactId }) => name || artifactId)
              .join(", ")}
          </Said>
          {artifacts.length > SHOWN && " …"}
        </Fact>
      )}
      {parent_id !== null && (
        <Fact name="Part of">
          <a href={hrefOf(parent_id)}>the work that delegated it</a>
        </Fact>
      )}
      <Fact name="More">
        <a href={hrefOf(id)}>Conversation</a> · <a href={hrefWith({ open: id, tab: "timeline" })}>Timeline</a>
      </Fact>
    </dl>
  );
}

function Fact({ name, children }: { readonly name: string; readonly children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
