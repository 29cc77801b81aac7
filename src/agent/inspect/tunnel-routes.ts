/** `/api/tunnels` and `/api/status` of the local API: lists tunnels, and starts and stops them while the agent runs. */
import { inTime } from '../../lib/in-time.ts'
import type { Problem } from '../../link/options/option-reader.ts'
import type { Agent } from '../agent.ts'
import { AgentFault } from '../agent-fault.ts'
import { describeProblem } from '../config/config-error.ts'
import { readLocalTunnel } from '../config/local-tunnel.ts'
import type { TunnelPlans } from '../config/tunnel-options.ts'
import { openTunnel } from '../open-tunnel.ts'
import type { AgentTunnel } from '../tunnel.ts'
import { shownName } from './inspector.ts'
import { LocalRefusal, localCodes, notFound, sendJson, sendNothing } from './local-answer.ts'
import { type LocalCall, type LocalParts, readBody } from './local-request.ts'

/** How long the server may take to give a tunnel its address, in milliseconds. */
const START_MS = 15_000

export function listTunnels(call: LocalCall): void {
  const tunnels = [...call.agent.tunnels].map((tunnel) => tunnelView(call, tunnel))
  sendJson(call.response, 200, { tunnels, uri: '/api/tunnels' })
}

export function getTunnel(call: LocalCall): void {
  sendJson(call.response, 200, tunnelView(call, namedTunnel(call)))
}

export async function startTunnel(call: LocalCall): Promise<void> {
  const { agent, inspector } = call
  const given = await readBody(call.request)
  const isTaken = (name: string): boolean => [...agent.tunnels].some(({ plan }) => plan.name === name)
  const { plans, problems } = readLocalTunnel(given, { isTaken })
  if (!plans || problems.length > 0) throw badTunnel(problems)
  if (!agent.isOnline) {
    // Clients of the official agent wait and retry when they read this text.
    const err = 'a successful ngrok tunnel session has not yet been established'
    const code = localCodes.notReady
    throw new LocalRefusal(503, 'the agent is not yet ready to start tunnels', { code, details: { err } })
  }
  const [tunnel] = await openTunnels(agent, plans)
  if (!tunnel) throw notStarted('it was closed')
  inspector.started(plans[0].name)
  sendJson(call.response, 201, tunnelView(call, tunnel))
}

export async function stopTunnel(call: LocalCall): Promise<void> {
  const { agent, inspector, response } = call
  const tunnel = namedTunnel(call)
  await agent.closeTunnel(tunnel)
  if (![...agent.tunnels].some(({ plan }) => plan.name === tunnel.plan.name)) inspector.stopped(tunnel.plan.name)
  sendNothing(response)
}

export function getStatus({ agent, version, response }: LocalCall): void {
  const { isOnline, latencyMs } = agent
  const legs = latencyMs === undefined ? [] : [{ latency: Math.round(latencyMs * 1e6) }]
  const status = isOnline ? 'online' : 'offline'
  sendJson(response, 200, { status, agent_version: version, session: { legs }, uri: '/api/status' })
}

function namedTunnel(call: LocalCall): AgentTunnel {
  const tunnel = findTunnel(call, call.param)
  if (!tunnel) throw notFound(call.path)
  return tunnel
}

/** Finds a tunnel by its shown name; `name (http)` also means a tunnel that has no other address. */
export function findTunnel({ agent }: LocalParts, name: string): AgentTunnel | undefined {
  const all = [...agent.tunnels]
  const plain = name.replace(/ \(https?\)$/, '')
  return all.find((tunnel) => shownName(tunnel) === name) ?? all.find((tunnel) => shownName(tunnel) === plain)
}

function tunnelView({ inspector }: LocalParts, tunnel: AgentTunnel) {
  const { plan, url, tunnelId, labels } = tunnel
  const name = shownName(tunnel)
  const { connections, requests } = inspector.meterOf(tunnel)
  const { gauge: _, ...http } = requests.figures
  return {
    name,
    ID: tunnelId,
    uri: `/api/tunnels/${encodeURIComponent(name)}`,
    public_url: url,
    proto: 'proto' in plan.asks ? plan.asks.proto : '',
    ...(labels && { labels }),
    config: { addr: plan.forwardsTo, inspect: isInspected(tunnel) },
    metrics: { conns: connections.figures, http },
  }
}

function isInspected({ plan: { asks, target } }: AgentTunnel): boolean {
  const isWeb = 'labels' in asks || asks.proto === 'http' || asks.proto === 'https'
  return isWeb && 'dial' in target && target.isInspected && !target.isHttp2
}

async function openTunnels(agent: Agent, plans: TunnelPlans): Promise<readonly AgentTunnel[]> {
  const [{ name }] = plans
  const late = (): Error => new AgentFault('lost', 'the server did not respond in time')
  try {
    return await inTime(openTunnel(agent, plans), START_MS, late)
  } catch (error) {
    // Of two addresses, the first may be open already.
    const begun = [...agent.tunnels].filter(({ plan }) => plan.name === name)
    await Promise.all(begun.map((tunnel) => agent.closeTunnel(tunnel)))
    if (!(error instanceof AgentFault)) throw error
    throw notStarted(error.serverCode === '' ? error.message : `${error.message} (${error.serverCode})`)
  }
}

function notStarted(err: string): LocalRefusal {
  return new LocalRefusal(502, 'failed to start tunnel', { code: localCodes.tunnelNotStarted, details: { err } })
}

function badTunnel(problems: readonly Problem[]): LocalRefusal {
  const err = problems.map((problem) => describeProblem(problem)).join('\n')
  return new LocalRefusal(400, 'invalid tunnel configuration', { code: localCodes.badTunnel, details: { err } })
}
