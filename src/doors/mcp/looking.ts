/** Tools that look around: who is there, and how the broker is. Limit: settings of agents are not shown. */
import * as z from "zod";
import type { StoredAgent } from "../../engine/agents.ts";
import { status } from "../../engine/status.ts";
import { type Presence, presenceSchema } from "../../schema/agent.ts";
import { statusSchema } from "../../schema/status.ts";
import { API_INFO } from "../openapi.ts";
import { Room } from "./content.ts";
import { type Tool, tool } from "./tool.ts";

const READERS = ["agent", "caller", "approver", "viewer", "operator"] as const;
const MOST = 50;
/** Bytes of descriptions and skills, by all that are shown together; few have more each. */
const SHOWN_BYTES = 32_768;
const NAME_BYTES = 128;

const foundSchema = z.object({
  name: z.string(),
  description: z.string(),
  skills: z.array(z.object({ id: z.string(), name: z.string(), description: z.string() })),
  /** Not all of its description and skills is shown. */
  truncated: z.boolean().optional(),
  paused: z.boolean(),
  presence: presenceSchema,
  waiting: z.int(),
  working: z.int(),
});
type Found = z.infer<typeof foundSchema>;

const lineOf = (found: Found): string => {
  const { name, description, skills, truncated, presence, paused, waiting, working } = found;
  const can = skills.map((skill) => skill.name).join(", ");
  const how = `${paused ? "paused, " : ""}${presence.state}, ${waiting} waiting, ${working} working`;
  return `- ${name} (${how})${description === "" ? "" : `: ${description}`}${can === "" ? "" : ` [${can}]`}${truncated === true ? " [cut]" : ""}`;
};

/** What it says of itself, half of the room at most for its description. */
function profileOf(
  { spec }: StoredAgent,
  bytes: number,
): Pick<Found, "description" | "skills" | "truncated"> {
  const room = new Room(bytes);
  const description = room.take(spec.description, bytes / 2);
  const skills = room.each(spec.skills, (skill) => {
    room.spend();
    const id = room.take(skill.id, NAME_BYTES);
    const name = room.take(skill.name, NAME_BYTES);
    const about = room.take(skill.description);
    return { id, name, about, isCut: [id, name, about].some(({ truncated }) => truncated === true) };
  });
  const isCut =
    description.truncated === true ||
    skills.length < spec.skills.length ||
    skills.some((skill) => skill.isCut);
  return {
    description: description.text,
    skills: skills.map(({ id, name, about }) => ({ id: id.text, name: name.text, description: about.text })),
    ...(isCut && { truncated: true }),
  };
}

export const lookingTools: readonly Tool[] = [
  tool({
    name: "discover_agents",
    title: "Find agents",
    description:
      "Which agents there are, what they are for, and whether anybody works for them now: online (polls), stale (was there some minutes ago), offline (delegations wait until somebody comes). Up to 50, in short where they are many; narrow with query.",
    for: READERS,
    reads: true,
    input: {
      query: z
        .string()
        .max(256)
        .optional()
        .describe("Words that name, description or skills must have, all of them."),
      online_only: z.boolean().default(false),
    },
    output: { agents: z.array(foundSchema), omitted: z.int() },
    async handle({ broker }, { query = "", online_only }) {
      const words = query.toLowerCase().split(/\s+/).filter(Boolean);
      const known = await Promise.all((await broker.agents.names()).map((name) => broker.agents.find(name)));
      const fitting = known
        .filter((agent) => agent !== null)
        .filter(({ name, spec: { description, skills } }) => {
          const said = JSON.stringify([name, description, skills]).toLowerCase();
          return words.every((word) => said.includes(word));
        });
      const chosen: { agent: StoredAgent; presence: Presence }[] = [];
      let omitted = 0;
      for (const agent of fitting) {
        if (chosen.length === MOST) {
          omitted += 1;
          continue;
        }
        const presence = await broker.presences.of(agent.name);
        if (!online_only || presence.state === "online") chosen.push({ agent, presence });
      }
      const agents: Found[] = [];
      for (const { agent, presence } of chosen) {
        const { name, paused } = agent;
        const { waiting, working } = await broker.agents.counts(name);
        const profile = profileOf(agent, SHOWN_BYTES / chosen.length);
        agents.push({ name, ...profile, paused, presence, waiting, working });
      }
      const more = omitted === 0 ? "" : `\n${omitted} more: narrow with query.`;
      const text = agents.length === 0 ? "No agent fits." : agents.map(lineOf).join("\n");
      return { text: `${text}${more}`, data: { agents, omitted } };
    },
  }),
  tool({
    name: "broker_health",
    title: "Broker and token",
    description: "Whether the broker works, its version and time, and which principal your token is.",
    for: READERS,
    reads: true,
    input: {},
    output: statusSchema.shape,
    async handle({ broker, principal }) {
      const data = { version: API_INFO.version, ...(await status(broker, principal)) };
      return {
        text: `The broker works (version ${data.version}, ${data.now}). You are ${data.principal}.`,
        data,
      };
    },
  }),
];
