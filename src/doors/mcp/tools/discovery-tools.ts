/** Tools to find agents and to check the broker. Limit: agents' settings are not shown. */
import * as z from "zod";
import { agentPage, type ListedAgent } from "../../../engine/agents/list.ts";
import type { StoredAgent } from "../../../engine/agents/stored-agent.ts";
import { status } from "../../../engine/upkeep/status.ts";
import { presenceSchema } from "../../../schema/presence.ts";
import { statusSchema } from "../../../schema/status.ts";
import { agentNameSchema } from "../../../schema/values.ts";
import { API_INFO } from "../../openapi/document.ts";
import { ByteBudget } from "./content.ts";
import { defineTool, type Tool } from "./tool.ts";
import { READERS } from "./visibility.ts";

const MAX_AGENTS = 50;
/** Agents read at a time. */
const PAGE_SIZE = 100;
/** The most agents scanned in one call. */
const MAX_SCANNED = 1_000;
/** The most bytes of descriptions and skills in one output, shared by its agents. */
const PROFILE_BYTES = 32_768;
const NAME_BYTES = 128;

const agentViewSchema = z.object({
  name: z.string(),
  description: z.string(),
  skills: z.array(z.object({ id: z.string(), name: z.string(), description: z.string() })),
  /** Some of the description or skills is not shown. */
  truncated: z.boolean().optional(),
  paused: z.boolean(),
  presence: presenceSchema,
  waiting: z.int(),
  working: z.int(),
});
type AgentView = z.infer<typeof agentViewSchema>;

const agentLine = (agent: AgentView): string => {
  const { name, description, skills, truncated, presence, paused, waiting, working } = agent;
  const skillNames = skills.map((skill) => skill.name).join(", ");
  const { state, pollers, last_seen_at } = presence;
  const seen = `${state}, ${pollers} polling, last seen ${last_seen_at ?? "never"}`;
  const status = `${paused ? "paused, " : ""}${seen}, ${waiting} waiting, ${working} working`;
  return `- ${name} (${status})${description === "" ? "" : `: ${description}`}${skillNames === "" ? "" : ` [${skillNames}]`}${truncated === true ? " [cut]" : ""}`;
};

/** The agent's description, in at most half of the bytes, and its skills. */
function profileOf(
  { spec }: StoredAgent,
  bytes: number,
): Pick<AgentView, "description" | "skills" | "truncated"> {
  const budget = new ByteBudget(bytes);
  const description = budget.cut(spec.description, bytes / 2);
  const skills = budget.map(spec.skills, (skill) => {
    budget.spend();
    const id = budget.cut(skill.id, NAME_BYTES);
    const name = budget.cut(skill.name, NAME_BYTES);
    const about = budget.cut(skill.description);
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

export const discoveryTools: readonly Tool[] = [
  defineTool({
    name: "discover_agents",
    title: "Find agents",
    description:
      "List agents with their description, skills and presence: online (a worker polls), stale (a worker polled minutes ago), offline (delegations wait until a worker polls), with the number of polls now (pollers) and the time of the last one (last_seen_at). Returns at most 50 agents, with shorter descriptions when there are many. Narrow the list with query, or continue with cursor.",
    visibleTo: READERS,
    readOnly: true,
    input: {
      query: z
        .string()
        .max(256)
        .optional()
        .describe("Words to search for in name, description and skills. An agent must match all of them."),
      online_only: z.boolean().default(false),
      cursor: agentNameSchema.optional().describe("The next_cursor of the previous call."),
    },
    output: { agents: z.array(agentViewSchema), omitted: z.int(), next_cursor: z.string().nullable() },
    async handle({ broker }, { query = "", online_only, cursor }) {
      const words = query.toLowerCase().split(/\s+/).filter(Boolean);
      const matches = ({ name, spec: { description, skills }, presence }: ListedAgent): boolean => {
        const text = JSON.stringify([name, description, skills]).toLowerCase();
        return words.every((word) => text.includes(word)) && (!online_only || presence.state === "online");
      };
      const chosen: ListedAgent[] = [];
      let omitted = 0;
      let after: string | undefined = cursor;
      let next: string | null = null;
      for (let scanned = 0; scanned < MAX_SCANNED; scanned += PAGE_SIZE) {
        const page = await agentPage(broker, { after, limit: PAGE_SIZE });
        const found = page.agents.filter(matches);
        chosen.push(...found.slice(0, MAX_AGENTS - chosen.length));
        omitted += found.length;
        after = page.next ?? undefined;
        next = page.next;
        if (page.next === null) break;
      }
      omitted -= chosen.length;
      const next_cursor = omitted > 0 ? (chosen.at(-1)?.name ?? null) : next;
      const agents = chosen.map((agent): AgentView => {
        const { name, paused, presence, counts } = agent;
        const { waiting, working } = counts;
        return {
          name,
          ...profileOf(agent, PROFILE_BYTES / chosen.length),
          paused,
          presence,
          waiting,
          working,
        };
      });
      const more =
        next_cursor === null
          ? ""
          : `\n${omitted > 0 ? `${omitted} more agents match` : "There may be more"}. Narrow the list with query, or continue with cursor "${next_cursor}".`;
      const text = agents.length === 0 ? "No agent matches." : agents.map(agentLine).join("\n");
      return { text: `${text}${more}`, data: { agents, omitted, next_cursor } };
    },
  }),
  defineTool({
    name: "broker_health",
    title: "Check the broker",
    description:
      "Check that the broker works. Returns its version and time, and the principal of your token.",
    visibleTo: READERS,
    readOnly: true,
    input: {},
    output: statusSchema.shape,
    async handle({ broker, principal }) {
      const data = { version: API_INFO.version, ...(await status(broker, principal)) };
      return {
        text: `The broker works (version ${data.version}, ${data.now}). Your principal is ${data.principal}.`,
        data,
      };
    },
  }),
];
