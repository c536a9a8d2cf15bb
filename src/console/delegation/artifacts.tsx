import type { Artifact } from "../../schema/a2a.ts";
import { Empty } from "../ui/empty.tsx";
import { Said } from "../ui/said.tsx";
import { Output } from "./output.tsx";

/** The artifacts of the delegation. */
export function Artifacts({ artifacts }: { readonly artifacts: readonly Artifact[] }) {
  if (artifacts.length === 0) {
    return (
      <Empty title="No artifacts">
        Files and other output that the agent sends while it works appear here.
      </Empty>
    );
  }
  return (
    <>
      {artifacts.map(({ artifactId, name = artifactId, description, parts }) => (
        <section class="artifact" key={artifactId}>
          <h2>
            <Said>{name}</Said>
          </h2>
          {description !== undefined && (
            <p class="dim">
              <Said>{description}</Said>
            </p>
          )}
          <Output parts={parts} />
        </section>
      ))}
    </>
  );
}
