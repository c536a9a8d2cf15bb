import { useSignal } from "@preact/signals";
import { go, href } from "../app/route.ts";
import { readAgents } from "../data/agents.ts";
import { session } from "../session/session.ts";
import { Problem } from "../ui/problem.tsx";
import { useAction } from "../ui/use-action.ts";

/** A form that creates an agent and opens its page. */
export function NewAgent() {
  const name = useSignal("");
  const { isRunning, error, run } = useAction();
  const submit = (event: Event) => {
    event.preventDefault();
    void run(async () => {
      await session.value?.connection.admin.createAgent(name.value);
      await readAgents();
      go(href("agents", { name: name.value }));
    });
  };
  return (
    <form class="inline" onSubmit={submit}>
      <label>
        <span>New agent</span>
        <input
          name="name"
          required
          pattern="[a-z0-9][a-z0-9_\-]{0,62}"
          title="Small letters, digits, - and _; at most 63"
          placeholder="for example scout"
          value={name.value}
          onInput={(event) => {
            name.value = event.currentTarget.value;
          }}
        />
      </label>
      <button type="submit" disabled={isRunning}>
        Create
      </button>
      <Problem error={error} />
    </form>
  );
}
