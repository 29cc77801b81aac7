/** Names that are proven by a DNS record to belong to the users of this server. */
import { createHmac, randomBytes } from 'node:crypto'
import { SharedTurns } from '../../lib/limits/shared-turns.ts'
import type { RecordLookUp } from '../../lib/net/record-look-up.ts'
import { LOST_PROOF, type NameProof, proofKey, readProof, VOUCHED } from '../../model/name-proof.ts'
import { shared } from '../../model/shared.ts'
import type { ControlTools } from '../store/control-tools.ts'
import type { Writer } from '../store/writer.ts'

interface ProvenNamesOptions extends Pick<ControlTools, 'store' | 'now' | 'log'> {
  readonly domain: string
  readonly lookUp: RecordLookUp
}

/** The records that prove a name; one of them is enough. */
interface ProofRecords {
  readonly txtName: string
  readonly txtValue: string
  /** What a CNAME record must point to; a wildcard cannot be proven by one. */
  readonly cnameTarget: string
}

/** The stored fact from which all values derive: 32 bytes in hex. */
const SEED = 'name_proof_seed'

/** For how long a proof counts without a new lookup, in milliseconds: agents that come back do not wait for the DNS. */
const FRESH_MS = 3_600_000

/** For how long a proof counts while DNS lookups fail, in milliseconds. */
const KEPT_MS = 30 * 86_400_000

/** Most names that wait to be looked up, and for how long, in milliseconds: looking up takes a few seconds at most. */
const MAX_WAITING = 1000
const WAIT_MS = 5000

/** Who has the look-ups for certificates that the server orders. */
const OWN_ORDERS = 'orders'

/** Length of a value: 128 bits in hex, short enough for a label. */
const VALUE_CHARS = 32

/** Opens the proven names of the account of `store`; a new account gets a secret. */
export async function openProvenNames(options: ProvenNamesOptions): Promise<ProvenNames> {
  const { store } = options
  const seed =
    (await store.read((reader) => reader.meta(SEED))) ??
    (await store.write((writer) => writer.keepMeta(SEED, randomBytes(32).toString('hex'))))
  return new ProvenNames(options, seed)
}

export class ProvenNames {
  readonly #options: ProvenNamesOptions
  readonly #seed: string
  readonly #looking = new Map<string, Promise<NameProof['by'] | undefined>>()
  readonly #turns = new SharedTurns({ atOnce: shared.nameProofs.most, waiting: MAX_WAITING, waitMs: WAIT_MS })

  constructor(options: ProvenNamesOptions, seed: string) {
    this.#options = options
    this.#seed = seed
  }

  // The value of the record derives from a secret of the account and the name, so that a record for another server proves
  // nothing here.
  recordsFor(name: string): ProofRecords {
    const base = withoutWildcard(name)
    const value = createHmac('sha256', this.#seed).update(base).digest('hex').slice(0, VALUE_CHARS)
    return {
      txtName: `_postern.${base}`,
      txtValue: `postern=${value}`,
      cnameTarget: `p-${value}.${this.#options.domain}`,
    }
  }

  /** Why a member, `owner`, may not hold a (normalised) name; undefined when it may. Never rejects because of the DNS. */
  async whyNot(
    name: string,
    { owner = '', isFresh = true }: { readonly owner?: string; readonly isFresh?: boolean } = {},
  ): Promise<string | undefined> {
    const { now, log } = this.#options
    if (!this.#isOutside(name)) return undefined
    const kept = readProof(await this.#fact(name))
    if (isFresh && kept && now() - kept.at < FRESH_MS) return undefined
    const mayBeKept = kept !== undefined && now() - kept.at < KEPT_MS
    try {
      const by = await this.#looked(name, owner)
      if (by === 'busy') {
        return mayBeKept ? undefined : `too many names are being looked up; ask for \`${name}\` again in a moment`
      }
      if (by !== undefined) {
        await this.#keep(name, { at: now(), by })
        return undefined
      }
    } catch (err) {
      log.warn({ err, name }, 'cannot look up the DNS records that prove a name')
      if (mayBeKept) return undefined
      return `the records of \`${name}\` cannot be looked up at the moment (${codeOf(err)}); try again, or ask an admin`
    }
    if (kept) await this.#lose(name)
    return this.#remedy(name)
  }

  /** Why the proof of a name no longer counts; undefined when it does, and for a name that an admin holds without proof. */
  async whyNoLonger(name: string): Promise<string | undefined> {
    const fact = await this.#fact(name)
    return fact === undefined || fact === VOUCHED ? undefined : this.whyNot(name, { owner: OWN_ORDERS, isFresh: false })
  }

  #isOutside(name: string): boolean {
    const base = withoutWildcard(name)
    const { domain } = this.#options
    return base !== domain && !base.endsWith(`.${domain}`)
  }

  #remedy(name: string): string {
    const { txtName, txtValue, cnameTarget } = this.recordsFor(name)
    const cname = name.startsWith('*.') ? '' : `, or a CNAME record \`${name}\` to \`${cnameTarget}\``
    return `\`${name}\` is not proven to be yours: set the TXT record \`${txtName}\` to \`${txtValue}\`${cname}, and try again; an admin may hold it without proof`
  }

  /** Concurrent lookups of one name share one answer; `busy` when the owner's turn did not come in time. */
  async #looked(name: string, owner: string): Promise<NameProof['by'] | 'busy' | undefined> {
    const under = this.#looking.get(name)
    if (under) return under
    if (!(await this.#turns.take(owner))) return 'busy'
    try {
      const looking = this.#looking.get(name) ?? this.#look(name).finally(() => this.#looking.delete(name))
      this.#looking.set(name, looking)
      return await looking
    } finally {
      this.#turns.over(owner)
    }
  }

  async #look(name: string): Promise<NameProof['by'] | undefined> {
    const { lookUp } = this.#options
    const { txtName, txtValue, cnameTarget } = this.recordsFor(name)
    const [texts, aliases] = await Promise.allSettled([
      lookUp.texts(txtName),
      name.startsWith('*.') ? [] : lookUp.aliases(name),
    ])
    if (texts.status === 'fulfilled' && texts.value.some((text) => text.trim() === txtValue)) return 'txt'
    const isAlias = (target: string) => target.toLowerCase().replace(/\.$/, '') === cnameTarget
    if (aliases.status === 'fulfilled' && aliases.value.some(isAlias)) return 'cname'
    for (const each of [texts, aliases]) if (each.status === 'rejected') throw each.reason
    return undefined
  }

  #fact(name: string): Promise<string | undefined> {
    return this.#options.store.read((reader) => reader.meta(proofKey(name)))
  }

  async #keep(name: string, proof: NameProof): Promise<void> {
    await this.#options.store.write((writer) => writer.setMeta(proofKey(name), JSON.stringify(proof)))
  }

  async #lose(name: string): Promise<void> {
    this.#options.log.warn({ name }, 'DNS records no longer prove a name')
    await this.#options.store.write((writer) => writer.setMeta(proofKey(name), LOST_PROOF))
  }
}

/** Notes that an admin holds these names: certificates are ordered for them again, even where their proof is gone. */
export async function vouchFor(writer: Writer, names: readonly string[]): Promise<void> {
  const facts = await writer.metas(names.map(proofKey))
  for (const [key, fact] of facts) if (fact === LOST_PROOF) await writer.setMeta(key, VOUCHED)
}

function withoutWildcard(name: string): string {
  return name.replace(/^\*\./, '')
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error)
}
