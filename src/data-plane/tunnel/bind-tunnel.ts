/** Binds: an agent asks for a public address, by name or at random, and gets a tunnel that serves it. */

import { isId } from '../../lib/ids.ts'
import type { SharedTurns } from '../../lib/limits/shared-turns.ts'
import type { Control } from '../../link/planes/control-link.ts'
import type { BindMessage } from '../../link/wire/messages/bind.ts'
import { option } from '../../link/wire/messages/bind-options.ts'
import { refusals } from '../../model/agent-errors.ts'
import { MAX_BIND_OPTIONS } from '../../model/endpoint.ts'
import type { PlaneContext } from '../../model/plane-context.ts'
import { memberLabels } from '../../model/pool.ts'
import { BindRefusal, type EndpointRequest, type Endpoints } from './interfaces.ts'
import { type RandomBytes, randomName } from './random-names.ts'
import type { Registry } from './registry.ts'
import { type Address, isProto, requestedAddress, type ServedAddresses } from './requested-address.ts'
import { openFacts, type Seal, sealFacts } from './sealed.ts'
import { sessionCredential } from './session-credential.ts'
import type { LiveSession, Tunnel } from './session-types.ts'
import { boundTexts, MAX_TUNNELS } from './tunnel-bounds.ts'

/** What binding needs. */
export interface Binding extends ServedAddresses, Pick<PlaneContext, 'ids' | 'now' | 'log'> {
  readonly control: Control
  readonly endpoints: Endpoints
  readonly registry: Registry
  /** Seals tokens, which must survive a restart. */
  readonly seal: Seal
  readonly random: RandomBytes
  readonly turns: SharedTurns
  /** Ids of tunnels that the server stopped; their agents may not know that and ask for them again. */
  readonly stopped: ReadonlySet<string>
}

export interface Bound {
  readonly tunnel: Tunnel
  readonly address: Address
  readonly url: string
  readonly token: string
}

/** How many random addresses are tried before the agent is told that none is free. */
const MAX_TRIES = 100

/** Longest id that an agent may give a bind, in characters. */
const MAX_WIRE_ID = 128

/** Gives an agent an address and serves it, or says why not. */
export async function bind(session: LiveSession, request: BindMessage, binding: Binding): Promise<Bound | BindRefusal> {
  const { proto, id: wireId } = request
  if (!isProto(proto)) return proto === '' ? refusals.noLabels() : refusals.unknownProtocol(proto)
  const fault = faultOf(session, request) ?? boundTexts(request)
  if (fault) return fault
  const asked = requestedAddress(proto, request.opts, binding)
  if (asked instanceof BindRefusal) return asked

  const release = session.tunnels.reserve(wireId)
  if (release === undefined) return refusals.bindInvalid('another tunnel of this session has the same id')
  try {
    return await bindAllowed({ session, request, proto, asked, binding })
  } finally {
    release()
  }
}

interface Wanted {
  readonly session: LiveSession
  readonly request: BindMessage
  readonly proto: EndpointRequest['proto']
  readonly asked: Address | undefined
  readonly binding: Binding
}

/** Somebody has the address that was asked for. */
interface Taken {
  readonly takenAt: Address
  readonly refusal: BindRefusal
}

interface Attempt extends Wanted {
  readonly token: BindToken | undefined
  /** Whether no particular address was asked for. */
  readonly isRandom: boolean
}

async function bindAllowed(wanted: Wanted, { isSecond = false } = {}): Promise<Bound | BindRefusal> {
  const { session, binding } = wanted
  const tried = await inTurn(session, binding.turns, () => tryBind(wanted))
  if (!('takenAt' in tried)) return tried
  // Tried only once more, so that of two waiters one is refused; everything is checked again, since seconds have passed.
  if (isSecond || !(await isFreed(tried.takenAt, wanted))) return tried.refusal
  return bindAllowed(wanted, { isSecond: true })
}

/** Binds in a turn of the credential (D104); a sign of life is waited for without one. */
export async function inTurn<T>(
  session: LiveSession,
  turns: SharedTurns,
  work: () => Promise<T>,
): Promise<T | BindRefusal> {
  const turn = turns.take(session.credentialId)
  if (turn !== true && !(await turn)) return refusals.bindsBusy()
  try {
    return session.isEnded ? refusals.stopping() : await work()
  } finally {
    turns.over(session.credentialId)
  }
}

async function tryBind(wanted: Wanted): Promise<Bound | BindRefusal | Taken> {
  const { session, request, asked, binding } = wanted
  const token = await readToken(session, request, asked, binding)
  if (token && binding.stopped.has(token.tunnelId)) {
    const credential = await sessionCredential(session, binding)
    return credential instanceof BindRefusal ? credential : refusals.tunnelStopped()
  }
  const chosen = asked ?? token
  const attempt = { ...wanted, token, isRandom: !chosen }
  if (!chosen) return bindAnywhere(attempt)
  const bound = await serve(chosen, attempt)
  return bound instanceof BindRefusal && bound.isTaken ? { takenAt: chosen, refusal: bound } : bound
}

/**
 * Asks the holders of an address for a sign of life, and tells whether the address is free afterwards. An agent that vanished
 * must not keep the address from its successor. Called only for agents that may have the address.
 */
async function isFreed(address: Address, { session, proto, binding }: Wanted): Promise<boolean> {
  const { registry, control } = binding
  const place = addressKey(proto, address)
  const holders = registry.holdersOf(place)
  if (holders.includes(session)) return false
  if (holders.length === 0) return (await control.ask('proveAlive', { place }).catch(() => false)) && !session.isEnded
  await Promise.all(holders.map((holder) => holder.proveAlive()))
  return !registry.holdersOf(place).some((holder) => holders.includes(holder)) && !session.isEnded
}

/**
 * The key that two endpoints cannot share: a port, whatever name its URL shows, or a name on one of the two listeners.
 */
function addressKey(proto: Attempt['proto'], { host, port }: Address): string {
  if (port !== undefined) return `:${port}`
  return `${proto === 'http' ? 'plain' : 'secure'}:${host}`
}

async function bindAnywhere(attempt: Attempt): Promise<Bound | BindRefusal> {
  const { session, proto, binding } = attempt
  let tries = 0
  for (const address of proto === 'tcp' ? randomPorts(binding) : randomNames(binding)) {
    const bound = await serve(address, attempt)
    if (!(bound instanceof BindRefusal) || !bound.isTaken || session.isEnded) return bound
    if (++tries >= MAX_TRIES) break
  }
  return refusals.nothingFree(proto === 'tcp' ? 'TCP port' : 'name')
}

function* randomNames({ domain, random }: Binding): Generator<Address> {
  for (;;) yield { host: randomName(domain, random), port: undefined }
}

function* randomPorts({ domain, tcpPorts }: Binding): Generator<Address> {
  let hasChoice = false
  for (const port of tcpPorts.choices()) {
    hasChoice = true
    yield { host: domain, port }
  }
  // When all are in use, one is asked for nevertheless: the agent may be refused for another reason, which comes first.
  if (!hasChoice) yield { host: domain, port: tcpPorts.range.from }
}

async function serve(address: Address, attempt: Attempt): Promise<Bound | BindRefusal> {
  const { session, request, proto, token, isRandom, binding } = attempt
  const { ids, registry, now, seal } = binding
  const { host, port } = address
  // An id in use is not given twice, even to an agent that can prove it held the id; but its session may move with it.
  const former = token && registry.mayStart(token.tunnelId, session.id) ? token : undefined
  const id = former?.tunnelId ?? ids.next('tn_')
  // Tunnel and endpoint ids differ only in their prefix, so that each can be told from the other.
  const endpointId = `ep_${id.slice('tn_'.length)}`
  const httpVersion: 1 | 2 = request.forwardsProto === 'http2' ? 2 : 1
  const plan = { kind: 'tunnel', tunnelId: id, httpVersion, proxyHeader: proxyHeader(request) ?? 0 } as const
  const { credentialId, id: sessionId } = session
  const { opts, poolingEnabled: isPooled } = request
  const place = addressKey(proto, address)
  const asking = { id: endpointId, proto, host, port, place, isRandom, isPooled, tunnel: plan }
  const open = await binding.endpoints.open({ ...asking, credentialId, sessionId, opts }).catch((error: unknown) => {
    binding.log.error({ session: sessionId, endpoint: endpointId, error }, 'endpoint cannot be opened')
    return refusals.broken()
  })
  if (open instanceof BindRefusal) return open
  if (session.isEnded) {
    open.close()
    return refusals.stopping()
  }
  if (port !== undefined) binding.tcpPorts.use(port)
  const startedAt = former?.startedAt ?? now()
  const labels = memberLabels(open.served)
  const tunnel: Tunnel = {
    id,
    wireId: request.id || id,
    session,
    startedAt,
    forwardsTo: request.forwardsTo,
    httpVersion,
    endpoint: { id: endpointId, proto, place, open },
    poolMember: labels && { id, httpVersion, labels },
    metadata: request.metadata,
    name: request.name,
    description: request.description,
    updatedAt: startedAt,
    handOver() {
      if (port !== undefined) binding.tcpPorts.leave(port)
      open.handOver()
    },
    close() {
      if (port !== undefined) binding.tcpPorts.leave(port)
      try {
        open.close()
      } catch (error) {
        // The rest of the session must still be released.
        binding.log.error({ tunnel: id, error }, 'endpoint cannot be closed')
      }
    },
  }
  await registry.startTunnel(tunnel)
  return {
    tunnel,
    address,
    url: open.url,
    token: sealBindToken(seal, { credentialId, tunnelId: id, startedAt, proto, host, port }),
  }
}

function faultOf(session: LiveSession, request: BindMessage): BindRefusal | undefined {
  const options = Object.keys(request.opts).length
  if (options > MAX_BIND_OPTIONS) {
    return refusals.bindInvalid(`it has ${options} options; at most ${MAX_BIND_OPTIONS} are read`)
  }
  if (session.tunnels.size >= MAX_TUNNELS) return refusals.tooManyTunnels(MAX_TUNNELS)
  if (request.id.length > MAX_WIRE_ID) return refusals.bindInvalid(`its id is longer than ${MAX_WIRE_ID} characters`)
  if (proxyHeader(request) === undefined) return refusals.bindInvalid('`ProxyProto` must be 0, 1 or 2')
  const other = request.bindings.find((each) => each !== 'public')
  if (other !== undefined)
    return refusals.bindInvalid('this server has public endpoints only; use the binding `public`')
  return undefined
}

/** The PROXY header version that the agent wants; undefined when invalid. */
function proxyHeader({ opts }: BindMessage): 0 | 1 | 2 | undefined {
  const version = option(opts, 'ProxyProto') ?? 0
  return version === 0 || version === 1 || version === 2 ? version : undefined
}

/** The token of the request, unless it is for another address than the one asked for. */
async function readToken(
  { credentialId }: LiveSession,
  { proto, token }: BindMessage,
  asked: Address | undefined,
  { seal }: Binding,
): Promise<BindToken | undefined> {
  const found = await openBindToken(seal, token.reveal(), { credentialId, proto })
  if (!found || !asked) return found
  return found.host === asked.host && found.port === asked.port ? found : undefined
}

interface BindToken {
  readonly credentialId: string
  readonly tunnelId: string
  /** When the tunnel was first started, in milliseconds since 1970. */
  readonly startedAt: number
  readonly proto: string
  readonly host: string
  /** TCP only. */
  readonly port: number | undefined
}

/** The token of a bind: with it an agent gets the same address and tunnel id again, even from a new process. */
export function sealBindToken(seal: Seal, { port, ...token }: BindToken): string {
  return sealFacts(seal, 'bind', { ...token, ...(port !== undefined && { port }) })
}

/** The token in `text`, if it belongs to the same credential and protocol; an invalid one counts as none. */
export async function openBindToken(
  seal: Seal,
  text: string,
  { credentialId, proto }: Pick<BindToken, 'credentialId' | 'proto'>,
): Promise<BindToken | undefined> {
  const facts = await openFacts(seal, 'bind', text)
  if (facts?.credentialId !== credentialId || facts.proto !== proto) return undefined
  const { tunnelId, startedAt, host, port } = facts
  if (typeof tunnelId !== 'string' || !isId(tunnelId, 'tn_')) return undefined
  if (typeof startedAt !== 'number' || typeof host !== 'string') return undefined
  if (port !== undefined && typeof port !== 'number') return undefined
  return { credentialId, tunnelId, startedAt, proto, host, port }
}
