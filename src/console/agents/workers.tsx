import { hrefOf } from "../app/route.ts";
import { flightOf } from "../data/flights.ts";
import { Age } from "../ui/age.tsx";
import { Said } from "../ui/said.tsx";
import { useLoaded } from "../ui/use-loaded.ts";
import { taskText } from "../ui/words.ts";

/** The processes that work under the agent's name. */
export function Workers({ name }: { readonly name: string }) {
  const { value } = useLoaded(name, ({ admin }, signal) => admin.listWorkers(name, { signal }));
  if (value === null || value.length === 0) return null;
  return (
    <>
      <h2>Workers</h2>
      <ul class="workers">
        {value.map(({ id, last_seen_at, delegations }) => (
          <li key={id}>
            <Said>{id}</Said>{" "}
            <span class="dim">
              seen <Age at={last_seen_at} ago />
            </span>{" "}
            {delegations.map((delegation) => (
              <a key={delegation} href={hrefOf(delegation)}>
                <Said>{titleOf(delegation)}</Said>
              </a>
            ))}
          </li>
        ))}
      </ul>
    </>
  );
}

/** Its task, if it is among those in view. */
function titleOf(id: string): string {
  const flight = flightOf(id)?.value;
  return flight ? taskText(flight) : `…${id.slice(-8)}`;
}
