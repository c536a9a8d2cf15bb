/** Tools that look around: who is there, and how the broker is. Limit: settings of agents are not shown. */
import * as z from "zod";
import { agentPage, type ListedAgent } from "../../../engine/agents/pages.ts";
import type { StoredAgent } from "../../../engine/agents/store.ts";
import { status } from "../../../engine/upkeep/status.ts";
import { presenceSchema } from "../../../schema/agent.ts";
import { statusSchema } from "../../../schema/status.ts";
import { agentNameSchema } from "../../../schema/values.ts";
import { API_INFO } from "../../openapi/document.ts";
import { Room } from "./content.ts";
import { type Tool, tool } from "./tool.ts";

const READERS = ["agent", "caller", "approver", "viewer", "operator"] as const;
const MOST = 50;
/** Agents read at a time. */
const PAGE = 100;
/** Agents looked at in one call. */
const SCAN = 1_000;
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
      "Which agents there are, what they are for, and whether anybody works for them now: online (polls), stale (was there some minutes ago), offline (delegations wait until somebody comes). Up to 50 at a time, shortened when there are many; narrow with query, or continue with cursor.",
    for: READERS,
    reads: true,
    input: {
      query: z
        .string()
        .max(256)
        .optional()
        .describe("Words that name, description or skills must have, all of them."),
      online_only: z.boolean().default(false),
      cursor: agentNameSchema.optional().describe("next_cursor of the previous call, to continue after it."),
    },
    output: { agents: z.array(foundSchema), omitted: z.int(), next_cursor: z.string().nullable() },
    async handle({ broker }, { query = "", online_only, cursor }) {
      const words = query.toLowerCase().split(/\s+/).filter(Boolean);
      const fits = ({ name, spec: { description, skills }, presence }: ListedAgent): boolean => {
        const said = JSON.stringify([name, description, skills]).toLowerCase();
        return words.every((word) => said.includes(word)) && (!online_only || presence.state === "online");
      };
      const chosen: ListedAgent[] = [];
      let omitted = 0;
      let after: string | undefined = cursor;
      let next: string | null = null;
      for (let scanned = 0; scanned < SCAN; scanned += PAGE) {
        const page = await agentPage(broker, { after, limit: PAGE });
        const found = page.agents.filter(fits);
        chosen.push(...found.slice(0, MOST - chosen.length));
        omitted += found.length;
        after = page.next ?? undefined;
        next = page.next;
        if (page.next === null) break;
      }
      omitted -= chosen.length;
      const next_cursor = omitted > 0 ? (chosen.at(-1)?.name ?? null) : next;
      const agents = chosen.map((agent): Found => {
        const { name, paused, presence, counts } = agent;
        const { waiting, working } = counts;
        return { name, ...profileOf(agent, SHOWN_BYTES / chosen.length), paused, presence, waiting, working };
      });
      const more =
        next_cursor === null
          ? ""
          : `\n${omitted > 0 ? `${omitted} more` : "There may be more"}: narrow with query, or continue with cursor "${next_cursor}".`;
      const text = agents.length === 0 ? "No agent fits." : agents.map(lineOf).join("\n");
      return { text: `${text}${more}`, data: { agents, omitted, next_cursor } };
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
