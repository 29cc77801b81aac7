/** What SIGHUP does to an agent that runs without a terminal: it reloads its file and opens, closes and changes tunnels to match. */
import { isDeepStrictEqual } from 'node:util'
import type { Agent } from '../../agent/agent.ts'
import type { AgentConfig } from '../../agent/config/connection.ts'
import type { TunnelPlans } from '../../agent/config/tunnel-options.ts'
import { openTunnel } from '../../agent/open-tunnel.ts'
import type { AgentTunnelPlan } from '../../agent/tunnel.ts'
import { SettingsError } from '../../server/config/settings-error.ts'
import type { AgentJob } from './run.ts'

/** A log line about a reload. */
export interface Reloaded {
  readonly level: 'info' | 'warn'
  readonly msg: string
  readonly fields: Record<string, unknown>
}

interface AgentReload {
  readonly agent: Agent
  readonly running: AgentConfig
  /** Reads the file again; rejects with what is wrong. Undefined when the tunnel is described by flags. */
  readonly again: AgentJob['again']
  readonly tell: (line: Reloaded) => void
  /** Whether a tunnel is not from the file, and so is left alone. */
  readonly isOther?: ((name: string) => boolean) | undefined
}

/** Never rejects: a faulty configuration is reported, and changes nothing. */
export async function reloadAgent({ agent, running, again, tell, isOther = () => false }: AgentReload): Promise<void> {
  if (!again) {
    tell({
      level: 'warn',
      msg: 'nothing to reload: the tunnel is described by flags; restart to change it',
      fields: {},
    })
    return
  }
  try {
    const { config, tunnels } = await again()
    const changes = changeTunnels(agent, tunnels, { tell, isOther })
    const pending = pendingOf(running, config)
    const msg = pending.length > 0 ? 'configuration reloaded; some changes need a restart' : 'configuration reloaded'
    const fields = { ...changes, ...(pending.length > 0 && { needs_restart: pending }) }
    tell({ level: pending.length > 0 ? 'warn' : 'info', msg, fields })
  } catch (error) {
    const problems = error instanceof SettingsError ? error.problems : [reasonOf(error)]
    tell({ level: 'warn', msg: 'configuration cannot be reloaded; nothing has changed', fields: { problems } })
  }
}

/** Names of tunnels, by what was done to them. */
interface TunnelChanges {
  readonly opened: string[]
  readonly closed: string[]
  readonly changed: string[]
}

/** Does not wait for the server, which may be unreachable. */
function changeTunnels(
  agent: Agent,
  wanted: readonly TunnelPlans[],
  { tell, isOther }: Pick<AgentReload, 'tell'> & { isOther: (name: string) => boolean },
): TunnelChanges {
  const changes: TunnelChanges = { opened: [], closed: [], changed: [] }
  const open = Map.groupBy(agent.tunnels, ({ plan }) => plan.name)
  const names = new Set(wanted.map(([{ name }]) => name))
  const close = (name: string) => Promise.all((open.get(name) ?? []).map((tunnel) => agent.closeTunnel(tunnel)))
  const failed = (name: string) => (error: unknown) =>
    tell({ level: 'warn', msg: 'tunnel refused', fields: { tunnel: name, reason: reasonOf(error) } })
  for (const name of open.keys()) {
    if (names.has(name) || isOther(name)) continue
    changes.closed.push(name)
    close(name).catch(failed(name))
  }
  for (const plans of wanted) {
    const [{ name }] = plans
    const before = open.get(name)
    if (!before) {
      changes.opened.push(name)
      openTunnel(agent, plans).catch(failed(name))
    } else if (before.length === plans.length && before.every(({ plan }, i) => asksTheSame(plan, plans[i]))) {
      // Only its service may have changed, which the server need not know: its address stays.
      if (before.some(({ plan }) => plan.forwardsTo !== plans[0].forwardsTo)) changes.changed.push(name)
      for (const [i, tunnel] of before.entries()) tunnel.redirect(plans[i] ?? plans[0])
    } else {
      changes.changed.push(name)
      close(name)
        .then(() => openTunnel(agent, plans))
        .catch(failed(name))
    }
  }
  return changes
}

/** Whether both plans ask the server for the same thing. */
function asksTheSame(before: AgentTunnelPlan, after: AgentTunnelPlan | undefined): boolean {
  const bindOptions = ({ target: _target, forwardsTo: _to, forwardsProto: _proto, ...asks }: AgentTunnelPlan) => asks
  return after !== undefined && isDeepStrictEqual(bindOptions(before), bindOptions(after))
}

/** The settings that have changed and need a restart to take effect. */
function pendingOf(before: AgentConfig, after: AgentConfig): string[] {
  const sessionSettings = (config: AgentConfig) => ({
    server: config.server,
    ca: config.ca,
    authtoken: config.authtoken?.reveal(),
    metadata: config.metadata,
    update: config.update,
    update_checks: config.updateChecks,
    remote_management: config.remoteManagement,
    heartbeat_interval: config.heartbeatIntervalMs,
    heartbeat_tolerance: config.heartbeatToleranceMs,
    connections: config.connections,
    inspect_listen: config.inspectListen,
  })
  const was = sessionSettings(before)
  return Object.entries(sessionSettings(after))
    .filter(([key, value]) => !isDeepStrictEqual(value, was[key as keyof typeof was])) // a key of the same object
    .map(([key]) => key)
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
