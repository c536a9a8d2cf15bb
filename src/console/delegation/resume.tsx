import { readAgents } from "../data/agents.ts";
import { session } from "../session/session.ts";
import { Problem } from "../ui/problem.tsx";
import { useAction } from "../ui/use-action.ts";

/** Resumes a paused agent where its pause is said. The sentence changes once the page has read the agent again. */
export function Resume({ agent }: { readonly agent: string }) {
  const { isRunning, error, run, again } = useAction();
  const resume = async () => {
    await session.value?.connection.admin.resumeAgent(agent);
    await readAgents();
  };
  return (
    <>
      <button type="button" disabled={isRunning} onClick={() => void run(resume)}>
        Resume {agent}
      </button>
      <Problem error={error} again={again} />
    </>
  );
}
