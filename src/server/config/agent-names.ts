/** The names by which agents may reach the server, which its certificate for them contains. */
import type { Settings } from './read-settings.ts'

export type AgentNameSettings = Pick<Settings, 'domain' | 'agentNames' | 'agentAddress'>

/** The usual names, and those that the operator adds with `--agent-names` and `--agent-address`. Each name once. */
export function namesForAgents({ domain, agentNames, agentAddress }: AgentNameSettings): string[] {
  const ofNode = agentAddress ? [agentAddress.host.toLowerCase()] : []
  return [...new Set(['localhost', '127.0.0.1', '::1', domain, `connect.${domain}`, ...agentNames, ...ofNode])]
}
