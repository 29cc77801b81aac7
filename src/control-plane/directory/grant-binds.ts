/** Decides binds: whether the credential allows the address, whether nobody else has it, and what is served there. */
import type { Logger } from '../../lib/log/create-log.ts'
import type { Reservation } from '../../link/planes/plane-calls.ts'
import { mayBindAddress, mayBindAnything, mayBindName, namesIt } from '../../model/acl.ts'
import type { AgentCredential } from '../../model/agent-credential.ts'
import { refusals } from '../../model/agent-errors.ts'
import {
  type AddressHolders,
  type AgentModules,
  type BindQuestion,
  type BindRefusal,
  type EndpointRequest,
  type GrantedEndpoint,
  isFreeFor,
} from '../../model/endpoint.ts'
import type { PoolDifference } from '../../model/pool.ts'
import type { Directory } from './directory.ts'
import { endpointConfig } from './endpoint-config.ts'

/** What binds are decided by, besides the directory. */
export interface BindRules {
  /** The present credential: its ACL may have changed since the agent connected. Throws when the store is down. */
  readonly credential: (id: string) => Promise<AgentCredential | undefined>
  /** The modules that a bind asks for; rejects with `BindRefusal`. `owner` is charged for the work. */
  readonly modules: (owner: string, bind: Pick<EndpointRequest, 'proto' | 'opts'>) => Promise<AgentModules>
  /** `owner` is charged for proving the name. */
  readonly holders: (address: Pick<EndpointRequest, 'host' | 'port'>, owner: string) => Promise<AddressHolders>
  /** Whether callers or other agents reach the server by a name (D105). */
  readonly isKeptName: (name: string) => boolean
  /** A digest with a key that all nodes have: base64url of 256 bits. */
  readonly digest: (text: string) => string
  /** The domain of random names. */
  readonly domain: string
  /** Why a tunnel at another node has the place; undefined when none has. */
  readonly whyTakenInCluster: (reservation: Reservation) => Promise<PoolDifference | undefined>
  /** Whether a claim that was just refused may be made again, since nodes that had the place have it no longer. */
  readonly isFreedInCluster: (reservation: Reservation) => Promise<boolean>
  readonly log: Logger
}

export class Binds {
  readonly #rules: BindRules
  readonly #directory: Directory
  /** Binds that are being decided. */
  readonly #asked = new Set<{ readonly planeId: string; readonly tunnelId: string; isWithdrawn: boolean }>()

  constructor(rules: BindRules, directory: Directory) {
    this.#rules = rules
    this.#directory = directory
  }

  /** Grants the address and has every other data plane serve it; rejects with `BindRefusal`. Asked again, it grants again. */
  async grant(planeId: () => string, bind: BindQuestion): Promise<GrantedEndpoint> {
    const asked = { planeId: planeId(), tunnelId: bind.tunnel.tunnelId, isWithdrawn: false }
    this.#asked.add(asked)
    try {
      return await this.#decide(
        bind,
        async (reservation) => !asked.isWithdrawn && this.#directory.reserve(planeId(), reservation),
      )
    } finally {
      this.#asked.delete(asked)
    }
  }

  /** Withdraws a bind that failed, or whose answer was lost. */
  withdraw(planeId: string, reservation: Parameters<Directory['release']>[1]): void {
    for (const asked of this.#asked) {
      if (asked.planeId === planeId && asked.tunnelId === reservation.tunnelId) asked.isWithdrawn = true
    }
    this.#directory.release(planeId, reservation)
  }

  async whyTaken(reservation: Reservation): Promise<PoolDifference | undefined> {
    return this.#directory.whyTaken(reservation) ?? this.#rules.whyTakenInCluster(reservation)
  }

  async #decide(
    bind: BindQuestion,
    reservation: (reservation: Reservation) => Promise<boolean>,
  ): Promise<GrantedEndpoint> {
    const rules = this.#rules
    const { host, port, hostport, place, tunnel, sessionId, isRandom } = bind
    const credential = await this.#credential(bind)
    const refusal = whyNotAllowed(credential, bind, rules)
    if (refusal) throw refusal
    // A credential without a known owner shares addresses only with itself.
    const { acl, ownerId = credential.id } = credential
    const modules = await rules.modules(ownerId, bind)
    const config = endpointConfig(bind, { ownerId, modules, digest: rules.digest })
    const held = await rules.holders({ host, port }, ownerId)
    if (held.edgeId !== undefined) throw refusals.heldByEdge(hostport, held.edgeId)
    // One that was reserved before the server had it is served on.
    if (port === undefined && rules.isKeptName(host) && held.reservationId === undefined) throw refusals.ofServer(host)
    if (held.unproven !== undefined) throw refusals.nameUnproven(held.unproven)
    // D66: a name with a rule or a reservation of its own is exempt from the wildcard.
    const isOwn = port !== undefined || namesIt(acl, host) || held.reservationId !== undefined
    if (held.wildcard && !isOwn) throw refusals.belowWildcard(host, held.wildcard)
    if (isRandom && held.reservationId !== undefined) throw refusals.reserved(hostport)
    const wanted = { place, tunnelId: tunnel.tunnelId, sessionId, ...config, isUnnamed: !isOwn }
    const again = async (): Promise<boolean> => (await rules.isFreedInCluster(wanted)) && reservation(wanted)
    if (!isFreeFor(config.config.id, bind) || !((await reservation(wanted)) || (await again()))) {
      throw refusals.alreadyOnline(hostport, await this.whyTaken(wanted).catch(() => undefined))
    }
    return { ...config, isUnnamed: !isOwn, reservationId: held.reservationId }
  }

  async #credential({ credentialId, sessionId }: BindQuestion): Promise<AgentCredential> {
    const { log } = this.#rules
    const found = await this.#rules.credential(credentialId).catch((error: unknown) => {
      log.warn({ session: sessionId, error }, 'credential cannot be looked up')
      throw refusals.storeAway()
    })
    if (!found) throw refusals.credentialGone()
    return found
  }
}

/**
 * Why the ACL of a credential forbids an address. The ACL must cover the address, and every possible address if the server
 * chooses (D48).
 */
export function whyNotAllowed(
  { id, acl }: AgentCredential,
  { proto, host, port, isRandom }: Pick<EndpointRequest, 'proto' | 'host' | 'port' | 'isRandom'>,
  { domain }: Pick<BindRules, 'domain'>,
): BindRefusal | undefined {
  if (isRandom) {
    if (proto === 'tcp' && !mayBindAnything(acl)) return refusals.randomPortNotAllowed(id)
    return mayBindName(acl, `*.${domain}`) ? undefined : refusals.randomNameNotAllowed(id, domain)
  }
  if (port === undefined) return mayBindName(acl, host) ? undefined : refusals.nameNotAllowed(id, host)
  return mayBindAddress(acl, { host, port }) ? undefined : refusals.addressNotAllowed(id, `${host}:${port}`)
}
