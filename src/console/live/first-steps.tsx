/** An empty console: what to do first, with the commands. */

import { href } from "../app/route.ts";
import { agents } from "../data/agents.ts";
import { RunDemo } from "../demo/panel.tsx";
import { isOperator, mayDelegate } from "../session/rights.ts";
import { CommandLine, CommandPlace } from "../ui/command-line.tsx";
import { StateMark } from "../ui/state-mark.tsx";
import { useLoaded } from "../ui/use-loaded.ts";

/** Whether anything was ever delegated that the reader may see; null: not known yet. */
export function useHasDelegations(): boolean | null {
  const { value } = useLoaded(
    "first",
    async ({ pages }, signal) => (await pages.list({ limit: 1 }, signal)).delegations.length > 0,
  );
  return value;
}

export function FirstSteps() {
  const found = agents.value ?? [];
  const online = found.find(({ presence }) => presence.state === "online");
  const name = online?.name ?? found[0]?.name ?? "scout";
  return (
    <section class="first-steps" aria-label="First steps">
      <h2>Three steps</h2>
      <ol>
        <li>
          <h3>{online && <StateMark phase="completed" />} Connect an agent</h3>
          {online ? (
            <p>{name} is connected.</p>
          ) : (
            <>
              <p>
                An agent is a name with a queue. A worker takes its work; any command can be one. This one
                counts words{!isOperator.value && " (it needs a token of the agent)"}:
              </p>
              <CommandLine command={`work --agent ${name} -- wc -w`} />
            </>
          )}
        </li>
        <li>
          <h3>Delegate</h3>
          <p>
            {mayDelegate.value ? (
              <>
                <a href={href("delegate", { target: found.length > 0 ? name : undefined })}>
                  Delegate in this page
                </a>
                , or in another terminal:
              </>
            ) : (
              "Whoever may delegate does it in this page, or in a terminal:"
            )}
          </p>
          <CommandLine command={`delegate ${name} "count these words" --wait`} />
        </li>
        <li>
          <h3>Answer</h3>
          <p>
            What an agent asks appears in <a href={href("needs")}>Needs you</a>, and waits there for your
            answer. In a terminal:
          </p>
          <CommandLine command="inbox" />
        </li>
      </ol>
      <CommandPlace />
      <RunDemo />
    </section>
  );
}
