/** Which names are to have a certificate of an authority: those of edges that end TLS, and others that ask for it. */

import type { Followed } from '../control/follower.ts'
import { coveredBy, namesOf } from '../control/live-certificates.ts'
import { type PartChange, StoredParts } from '../control/stored-parts.ts'
import { readHostport, readName } from '../model/hostport.ts'
import { agentIngresses } from '../resources/agent-ingresses.ts'
import { httpsEdges } from '../resources/https-edges.ts'
import type { ManagedCertificate } from '../resources/managed-certificate.ts'
import { reservedDomains } from '../resources/reserved-domains.ts'
import { tlsCertificates } from '../resources/tls-certificates.ts'
import { tlsEdges } from '../resources/tls-edges.ts'
import type { Change } from '../store/feed.ts'
import type { StoredResource } from '../store/reader.ts'
import type { Store } from '../store/store.ts'

export interface WantedName {
  readonly name: string
  readonly keyType: 'ecdsa' | 'rsa'
  /** The reserved domain or agent ingress of this name that asks for a certificate. */
  readonly domainIds: readonly string[]
  /** Of names with this, as many get a first certificate within a week. */
  readonly perWeek?: number
}

export interface WantedNamesOptions {
  readonly store: Store
  readonly onChange: () => void
  /** A wildcard that is wanted whatever is stored; names of edges that it covers get no certificate of their own. */
  readonly wildcard?: string | undefined
  /** Those of the server itself. */
  readonly ownNames?: readonly string[]
}

/** What one resource has to do with names. */
interface Part {
  /** Names that it wants to have certificates. */
  readonly wants?: readonly string[]
  /** `isUntold`: it does not know how far its certificate is, or has none yet. */
  readonly policy?: { readonly keyType: 'ecdsa' | 'rsa'; readonly isUntold: boolean }
  /** Names that an uploaded certificate covers. */
  readonly covers?: readonly string[]
  /** The name that a certificate was issued for, when, and until when it is good, in milliseconds since 1970. */
  readonly issuedFor?: string
  readonly issuedAt?: number
  readonly notAfter?: number
}

const kinds = [httpsEdges, tlsEdges, reservedDomains, agentIngresses, tlsCertificates].map(({ kind }) => kind)

export class WantedNames implements Followed {
  readonly #stored: StoredParts<Part>
  /** Ids of certificates by the name that they were issued for. */
  readonly #issued = new Map<string, Set<string>>()
  #wanted: ReadonlyMap<string, WantedName> = new Map()
  #isUploaded: (name: string) => boolean = () => false
  readonly #options: WantedNamesOptions

  constructor(options: WantedNamesOptions) {
    this.#stored = new StoredParts({ store: options.store, kinds, partOf })
    this.#options = options
  }

  get(name: string): WantedName | undefined {
    return this.#wanted.get(name)
  }

  get size(): number {
    return this.#wanted.size
  }

  /** The id of a certificate that was issued for a name, the newest if there are several. */
  issuedFor(name: string): string | undefined {
    return [...(this.#issued.get(name) ?? [])].sort().at(-1)
  }

  /** Whether an uploaded certificate covers a name. */
  isUploaded(name: string): boolean {
    return this.#isUploaded(name)
  }

  /** Names that got a certificate since a time, in milliseconds since 1970, without being wanted by what is stored. */
  issuedAlone(since: number): string[] {
    const { byId } = this.#stored
    const isRecent = (id: string): boolean => (byId.get(id)?.issuedAt ?? 0) >= since
    const issued = [...this.#issued].filter(([name]) => !this.#wanted.has(name))
    return issued.filter(([, ids]) => [...ids].some(isRecent)).map(([name]) => name)
  }

  /** Ids of issued certificates that ended before a time, in milliseconds since 1970, and whose names nobody wants. */
  leftOver(before: number): string[] {
    const isOver = ([, { issuedFor, notAfter = Number.POSITIVE_INFINITY }]: readonly [string, Part]) =>
      issuedFor !== undefined && notAfter < before && !this.#wanted.has(issuedFor)
    return [...this.#stored.byId].filter(isOver).map(([id]) => id)
  }

  async load(): Promise<void> {
    await this.#stored.load()
    this.#issued.clear()
    for (const [id, part] of this.#stored.byId) this.#note(id, part)
    await this.#settle({ isLoad: true })
  }

  async apply(changes: readonly Change[]): Promise<void> {
    const change = await this.#stored.apply(changes)
    if (!change) return
    const { before, after } = change
    for (const [id, { issuedFor = '' }] of before) {
      const ids = this.#issued.get(issuedFor)
      ids?.delete(id)
      if (ids?.size === 0) this.#issued.delete(issuedFor)
    }
    for (const [id, part] of after) this.#note(id, part)
    const gone = before.flatMap(([, { issuedFor }]) => issuedFor ?? []).filter((name) => !this.#issued.has(name))
    // A certificate that was issued or renewed changes nothing of what is wanted.
    const isSame = gone.length === 0 && [...before, ...after].every(([, { issuedFor }]) => issuedFor !== undefined)
    if (!isSame) await this.#settle({ gone, asking: newlyAsking(before, after) })
  }

  #note(id: string, { issuedFor }: Part): void {
    if (issuedFor !== undefined) this.#issued.set(issuedFor, (this.#issued.get(issuedFor) ?? new Set()).add(id))
  }

  /** Works out what is wanted now, and has new names looked after. */
  async #settle({
    gone = [],
    asking = [],
    isLoad = false,
  }: {
    gone?: readonly string[]
    asking?: readonly string[]
    isLoad?: boolean
  }): Promise<void> {
    const before = this.#wanted
    const { store, wildcard, ownNames = [] } = this.#options
    const parts = this.#stored.byId
    const isUploaded = coveredBy(new Set([...parts.values()].flatMap(({ covers = [] }) => covers)))
    this.#isUploaded = isUploaded
    const isBelow = coveredBy(new Set(wildcard === undefined ? [] : [wildcard]))
    const wanted = new Map<string, WantedName>()
    for (const name of [wildcard ?? [], ownNames.filter(isOrdered)].flat()) {
      if (!isUploaded(name)) wanted.set(name, { name, keyType: 'ecdsa', domainIds: [] })
    }
    for (const [id, { wants = [], policy }] of parts) {
      for (const name of wants) {
        if (isUploaded(name) || (isBelow(name) && !policy && !this.#issued.has(name))) continue
        const { keyType = 'ecdsa', domainIds = [] } = wanted.get(name) ?? {}
        wanted.set(name, {
          name,
          keyType: policy?.keyType ?? keyType,
          domainIds: policy ? [...domainIds, id] : domainIds,
        })
      }
    }
    const added = [...wanted.keys()].filter((name) => !before.has(name))
    if (added.length > 0) await store.write(({ certificates }) => certificates.manage(added))
    const untold = [...wanted.values()].filter(({ name, domainIds }) =>
      isLoad
        ? domainIds.some((id) => parts.get(id)?.policy?.isUntold)
        : domainIds.length > (before.get(name)?.domainIds.length ?? 0),
    )
    // A reserved domain that is new beside an edge wants to be told how far its name is.
    const again = [...gone, ...asking, ...untold.map(({ name }) => name)].filter((name) => wanted.has(name))
    if (again.length > 0) await store.write(({ certificates }) => certificates.lookAgain(again))
    this.#wanted = wanted
    this.#options.onChange()
  }
}

/** Names of what asks for a certificate from now on, also where it takes the place of what asked for the same before. */
function newlyAsking(before: PartChange<Part>['before'], after: PartChange<Part>['after']): string[] {
  const waiting = new Set(before.filter(([, { policy }]) => policy?.isUntold).map(([id]) => id))
  return after.flatMap(([id, { wants = [], policy }]) => (policy?.isUntold && !waiting.has(id) ? wants : []))
}

function partOf({ kind, fields, modules }: StoredResource): Part | undefined {
  switch (kind) {
    case tlsCertificates.kind:
      return typeof fields.issued_for === 'string'
        ? {
            issuedFor: fields.issued_for,
            issuedAt: Date.parse(String(fields.issued_at)),
            notAfter: Date.parse(String(fields.not_after)),
          }
        : { covers: namesOf({ fields }) }
    case reservedDomains.kind:
    case agentIngresses.kind: {
      // What is stored has passed the form of its resource.
      const policy = fields.certificate_management_policy as { private_key_type: 'ecdsa' | 'rsa' } | null | undefined
      const name = readName(String(fields.domain))
      if (fields.certificate_id) return { covers: [name] }
      if (!policy) return undefined
      const managed = fields.managed as ManagedCertificate | undefined // written by us alone
      const isUntold = !managed?.status || managed.certificate_id === null
      return { wants: [name].filter(isOrdered), policy: { keyType: policy.private_key_type, isUntold } }
    }
    case tlsEdges.kind:
      return endsTls(modules) ? { wants: hostsOf(fields) } : undefined
    default:
      return { wants: hostsOf(fields) }
  }
}

/** D31: TLS ends at an edge that says so, and at one that asks for client certificates. */
function endsTls(modules: StoredResource['modules']): boolean {
  const termination = modules.get('tls_termination')
  if (termination?.enabled === true) return termination.terminate_at === 'edge'
  return modules.get('mutual_tls')?.enabled === true
}

function hostsOf(fields: StoredResource['fields']): string[] {
  // What is stored has passed the form of its resource.
  return (fields.hostports as readonly string[]).map((each) => readHostport(each).host).filter(isOrdered)
}

/** Names that no authority can issue for are not asked for: they belong to each machine itself (RFC 6761 §6.3). */
export function isOrdered(name: string): boolean {
  return name.replace(/^\*\./, '').includes('.') && !/(^|\.)localhost$/.test(name)
}
