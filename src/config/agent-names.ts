/** The names by which agents may reach the server: those that its certificate for them holds. */
import type { Settings } from './read.ts'

export type AgentNameSettings = Pick<Settings, 'domain' | 'agentNames' | 'agentAddress'>

/** Those of the settings, with what the operator adds by `--agent-names` and `--agent-address`. Each name once. */
export function namesForAgents({ domain, agentNames, agentAddress }: AgentNameSettings): string[] {
  const ofNode = agentAddress ? [agentAddress.host.toLowerCase()] : []
  return [...new Set(['localhost', '127.0.0.1', '::1', domain, `connect.${domain}`, ...agentNames, ...ofNode])]
}
