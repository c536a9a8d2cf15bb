/** Starts the demo, says that it runs, and removes it. */
import { go, href, hrefOf } from "../app/route.ts";
import { readAgents } from "../data/agents.ts";
import { isOperator } from "../session/rights.ts";
import { session } from "../session/session.ts";
import { Problem } from "../ui/problem.tsx";
import { useAction } from "../ui/use-action.ts";
import { demo, leftOver } from "./state.ts";

const load = () => import("./run.ts");

/** For the operator, who may create agents. */
export function RunDemo() {
  const { isRunning, error, run } = useAction();
  if (!isOperator.value || demo.value !== null) return null;
  const start = async () => {
    const id = await (await load()).startDemo();
    if (id !== undefined) go(href("live", { open: id }));
  };
  return (
    <div class="run-demo">
      <button type="button" disabled={isRunning} onClick={() => void run(start)}>
        {isRunning ? "Starting …" : "Run the demo"}
      </button>
      <span class="dim">
        Two agents work in this page, for about ten seconds; then one asks you. It can be removed again.
      </span>
      <Problem error={error} />
    </div>
  );
}

/** What the page says while the demo runs, or when one was left behind. */
export function DemoNote() {
  const { isRunning, error, run } = useAction();
  const { phase, id = null } = demo.value ?? {};
  const left = leftOver.value;
  if (phase === undefined && left.length === 0) return null;
  const remove = async () => {
    const { removeAgents, removeDemo } = await load();
    const { connection } = session.peek() ?? {};
    if (phase !== undefined) await removeDemo();
    else if (connection) await removeAgents(connection, left);
    await readAgents();
  };
  return (
    <section class="demo-note" aria-label="Demo">
      <p>
        {phase === undefined ? (
          <>A demo was not removed: {left.join(", ")}.</>
        ) : (
          <>
            <b>The demo runs in this page.</b>{" "}
            {id === null ? (
              phase === "removing" && "It is being removed …"
            ) : (
              <>
                Watch <a href={hrefOf(id)}>its delegation</a>, and answer its question. It ends when you close
                the page.
              </>
            )}
          </>
        )}
      </p>
      <button type="button" disabled={isRunning} onClick={() => void run(remove)}>
        Remove the demo
      </button>
      <Problem error={error} />
    </section>
  );
}
