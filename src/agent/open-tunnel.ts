/** Opens the tunnel of one description, and its twin under the same name if there is one. */
import type { Agent } from './agent.ts'
import type { TunnelPlans } from './config/tunnel-options.ts'
import type { AgentTunnel } from './tunnel.ts'

/** Resolves when all of it is online. */
export async function openTunnel(agent: Agent, [plan, twin]: TunnelPlans): Promise<readonly AgentTunnel[]> {
  const tunnel = await agent.open(plan)
  return twin ? [tunnel, await agent.open(twin, { twin: tunnel })] : [tunnel]
}
