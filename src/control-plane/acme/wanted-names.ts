/** Which names want a certificate from the authority: those of edges that terminate TLS, and others that ask for it. */

import { Groups } from '../../lib/multi-map.ts'
import { coveredBy, wildcardOver } from '../../model/certificate-names.ts'
import { readHostport, readName } from '../../model/hostport.ts'
import { itemsOf, type MirrorChange, mirror } from '../mirrors/mirror.ts'
import { agentIngresses } from '../resources/agent-ingresses.ts'
import { httpsEdges } from '../resources/https-edges.ts'
import { reservedDomains } from '../resources/reserved-domains.ts'
import { fieldsOf } from '../resources/resource.ts'
import { namesOf, tlsCertificates } from '../resources/tls-certificates.ts'
import { tlsEdges } from '../resources/tls-edges.ts'
import type { Change } from '../store/feed.ts'
import type { Followed } from '../store/feed-follower.ts'
import type { StoredResource } from '../store/reader.ts'
import type { Store } from '../store/store.ts'

export interface WantedName {
  readonly name: string
  readonly keyType: 'ecdsa' | 'rsa'
  /** The reserved domain or agent ingress of this name that asks for a certificate. */
  readonly domainIds: readonly string[]
  /** The most names with this field that may get a first certificate within a week. */
  readonly perWeek?: number
}

interface WantedNamesOptions {
  readonly store: Store
  readonly onChange: () => void
  /** A wildcard that is always wanted; names of edges that it covers get no certificate of their own. */
  readonly wildcard?: string | undefined
  /** The names of the server itself. */
  readonly ownNames?: readonly string[]
}

/** What one resource contributes to the wanted names. */
interface Part {
  /** Names that it wants to have certificates. */
  readonly wants?: readonly string[]
  /** `isUntold`: the resource has no status of its certificate, or no certificate yet. */
  readonly policy?: { readonly keyType: 'ecdsa' | 'rsa'; readonly isUnreported: boolean }
  /** Names that an uploaded certificate covers. */
  readonly covers?: readonly string[]
  /** The name that a certificate was issued for, when, and until when it is good, in milliseconds since 1970. */
  readonly issuedFor?: string
  readonly issuedAt?: number
  readonly notAfter?: number
}

export class WantedNames implements Followed {
  readonly #followed: Followed
  /** By the id of the resource. */
  #parts: ReadonlyMap<string, Part> = new Map()
  /** Ids of certificates by the name that they were issued for. */
  readonly #issued = new Groups<string>()
  /** Ids of resources that want a certificate for a name, and of those that provide one. */
  readonly #wants = new Groups<string>()
  readonly #covers = new Groups<string>()
  /** Names that are in `#wants`, by the wildcard over them. */
  readonly #below = new Groups<string>()
  /** Names that are always wanted. */
  readonly #own: ReadonlySet<string>
  readonly #isCovered = coveredBy(this.#covers)
  readonly #isBelow: (name: string) => boolean
  readonly #wanted = new Map<string, WantedName>()
  /** Names for which something has changed since `#settle` last ran. */
  readonly #touched = new Set<string>()
  readonly #options: WantedNamesOptions

  constructor(options: WantedNamesOptions) {
    const { store, wildcard, ownNames = [] } = options
    this.#followed = mirror({
      ...itemsOf(store, [httpsEdges, tlsEdges, reservedDomains, agentIngresses, tlsCertificates], partOf),
      send: (change) => this.#take(change),
    })
    this.#options = options
    this.#own = new Set([wildcard ?? [], ownNames.filter(isOrdered)].flat())
    this.#isBelow = coveredBy(new Set(wildcard === undefined ? [] : [wildcard]))
  }

  get(name: string): WantedName | undefined {
    return this.#wanted.get(name)
  }

  get size(): number {
    return this.#wanted.size
  }

  /** The id of a certificate that was issued for a name, the newest if there are several. */
  issuedFor(name: string): string | undefined {
    return [...this.#issued.get(name)].sort().at(-1)
  }

  /** Whether an uploaded certificate covers a name. */
  isUploaded(name: string): boolean {
    return this.#isCovered(name)
  }

  /** Names that got a certificate since a time, in milliseconds since 1970, although no resource wants one. */
  issuedAlone(since: number): string[] {
    const isRecent = (id: string): boolean => (this.#parts.get(id)?.issuedAt ?? 0) >= since
    const issued = [...this.#issued.entries()].filter(([name]) => !this.#wanted.has(name))
    return issued.filter(([, ids]) => [...ids].some(isRecent)).map(([name]) => name)
  }

  /** Ids of issued certificates that expired before a time, in milliseconds since 1970, and whose names are not wanted. */
  leftOver(before: number): string[] {
    const isOver = ([, { issuedFor, notAfter = Number.POSITIVE_INFINITY }]: readonly [string, Part]) =>
      issuedFor !== undefined && notAfter < before && !this.#wanted.has(issuedFor)
    return [...this.#parts].filter(isOver).map(([id]) => id)
  }

  load(): Promise<void> {
    return this.#followed.load()
  }

  apply(changes: readonly Change[]): ReturnType<Followed['apply']> {
    return this.#followed.apply(changes)
  }

  async #take({ isAll, removed, set, all }: MirrorChange<Part>): Promise<void> {
    this.#parts = all
    if (isAll) {
      for (const groups of [this.#issued, this.#wants, this.#covers, this.#below]) groups.clear()
      for (const name of [...this.#own, ...this.#wanted.keys()]) this.#touched.add(name)
    }
    for (const [id, part] of removed) this.#note('delete', id, part)
    for (const [id, part] of set) this.#note('add', id, part)
    const issued = [...removed.values()].flatMap(({ issuedFor }) => issuedFor ?? [])
    const gone = issued.filter((name) => !this.#issued.has(name))
    await this.#settle({ lookAgain: isAll ? [] : [...gone, ...newlyAsking(removed, set)], isLoad: isAll })
  }

  #note(how: 'add' | 'delete', id: string, part: Part): void {
    const { issuedFor, wants = [], covers = [] } = part
    if (issuedFor !== undefined) this.#issued[how](issuedFor, id)
    for (const name of covers) this.#covers[how](name, id)
    for (const name of wants) {
      this.#wants[how](name, id)
      this.#below[this.#wants.has(name) ? 'add' : 'delete'](wildcardOver(name), name)
    }
    this.#touch(part)
  }

  #touch({ issuedFor, wants = [], covers = [] }: Part): void {
    if (issuedFor !== undefined) this.#touched.add(issuedFor)
    for (const name of wants) this.#touched.add(name)
    for (const name of covers) {
      this.#touched.add(name)
      for (const below of this.#below.get(name)) this.#touched.add(below)
      for (const own of this.#own) if (wildcardOver(own) === name) this.#touched.add(own)
    }
  }

  /** Decides which of the touched names are wanted now, and registers new ones. */
  async #settle({ lookAgain, isLoad }: { lookAgain: readonly string[]; isLoad: boolean }): Promise<void> {
    const { store } = this.#options
    const touched = [...this.#touched]
    const now = new Map(touched.flatMap((name) => this.#wantedAs(name) ?? []).map((each) => [each.name, each]))
    const added = [...now.keys()].filter((name) => !this.#wanted.has(name))
    if (added.length > 0) await store.write(({ certificates }) => certificates.manage(added))
    const unreported = [...now.values()].filter(({ name, domainIds }) =>
      isLoad
        ? domainIds.some((id) => this.#parts.get(id)?.policy?.isUnreported)
        : domainIds.length > (this.#wanted.get(name)?.domainIds.length ?? 0),
    )
    const isWanted = (name: string): boolean => now.has(name) || (this.#wanted.has(name) && !this.#touched.has(name))
    // A reserved domain that joins an edge needs the status of the name.
    const again = [...lookAgain, ...unreported.map(({ name }) => name)].filter(isWanted)
    if (again.length > 0) await store.write(({ certificates }) => certificates.lookAgain(again))
    // Only after all writes: if one fails, the retry must write everything again.
    for (const name of touched) {
      const wanted = now.get(name)
      if (wanted) this.#wanted.set(name, wanted)
      else this.#wanted.delete(name)
      this.#touched.delete(name)
    }
    // Issued or renewed certificates and names that are no longer wanted need no work.
    if (isLoad || added.length > 0 || again.length > 0) this.#options.onChange()
  }

  #wantedAs(name: string): WantedName | undefined {
    if (this.#isCovered(name)) return undefined
    let wanted: WantedName | undefined = this.#own.has(name) ? { name, keyType: 'ecdsa', domainIds: [] } : undefined
    const isBelow = this.#isBelow(name) && !this.#issued.has(name)
    // Sorted, so that all nodes agree.
    for (const id of [...this.#wants.get(name)].sort()) {
      const policy = this.#parts.get(id)?.policy
      if (isBelow && !policy) continue
      const { keyType = 'ecdsa', domainIds = [] } = wanted ?? {}
      wanted = { name, keyType: policy?.keyType ?? keyType, domainIds: policy ? [...domainIds, id] : domainIds }
    }
    return wanted
  }
}

/** Names of resources that newly ask for a certificate, even if they replace one that asked for the same name. */
function newlyAsking(before: ReadonlyMap<string, Part>, after: ReadonlyMap<string, Part>): string[] {
  return [...after].flatMap(([id, { wants = [], policy }]) =>
    policy?.isUnreported && !before.get(id)?.policy?.isUnreported ? wants : [],
  )
}

function partOf(stored: StoredResource): Part | undefined {
  switch (stored.kind) {
    case tlsCertificates.kind: {
      const { issued_for: issuedFor, issued_at, not_after } = fieldsOf(tlsCertificates, stored)
      if (typeof issuedFor !== 'string') return { covers: namesOf(stored) }
      return { issuedFor, issuedAt: Date.parse(String(issued_at)), notAfter: Date.parse(not_after) }
    }
    case reservedDomains.kind:
    case agentIngresses.kind: {
      // An agent ingress keeps the same, but never a certificate of its own choice.
      const { domain, managed, ...fields } = fieldsOf(reservedDomains, stored)
      const policy = fields.certificate_management_policy
      const name = readName(domain)
      if (fields.certificate_id) return { covers: [name] }
      if (!policy) return undefined
      const isUnreported = !managed?.status || managed.certificate_id === null
      return { wants: [name].filter(isOrdered), policy: { keyType: policy.private_key_type, isUnreported } }
    }
    case tlsEdges.kind:
      return endsTls(stored.modules) ? { wants: hostsOf(stored) } : undefined
    default:
      return { wants: hostsOf(stored) }
  }
}

/** D31: TLS is terminated at an edge that says so, and at one that asks for client certificates. */
function endsTls(modules: StoredResource['modules']): boolean {
  const termination = modules.get('tls_termination')
  if (termination?.enabled === true) return termination.terminate_at === 'edge'
  return modules.get('mutual_tls')?.enabled === true
}

/** The names of an edge; HTTPS and TLS edges keep them alike. */
function hostsOf(stored: StoredResource): string[] {
  const { hostports } = fieldsOf(httpsEdges, stored)
  return hostports.map((each) => readHostport(each).host).filter(isOrdered)
}

/** Whether an authority can issue for a name; local names belong to each machine itself (RFC 6761 §6.3). */
export function isOrdered(name: string): boolean {
  return name.replace(/^\*\./, '').includes('.') && !/(^|\.)localhost$/.test(name)
}
