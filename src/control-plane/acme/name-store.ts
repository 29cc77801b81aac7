/** Stores the state of names whose certificates this node orders. */
import { isDeepStrictEqual } from 'node:util'
import { timestamp } from '../../lib/clock.ts'
import { orderAt } from '../records/acme-keys.ts'
import { RENEWAL_ASKED } from '../records/renewals.ts'
import { resourceAt, sealFields } from '../records/sealed-fields.ts'
import { holdKey } from '../records/sealing.ts'
import { agentIngresses } from '../resources/agent-ingresses.ts'
import { CERTIFICATE_SLOT, type ManagedCertificate, type ManagedStatus } from '../resources/managed-certificate.ts'
import { reservedDomains } from '../resources/reserved-domains.ts'
import { issuedCertificate, tlsCertificates } from '../resources/tls-certificates.ts'
import {
  type CertificateReader,
  CHALLENGE,
  type ManagedName,
  type NameStage,
  type StoredChallenge,
} from '../store/certificate-reader.ts'
import type { ControlTools } from '../store/control-tools.ts'
import type { Writer } from '../store/writer.ts'
import { type NameState, statusOf } from './name-state.ts'
import { HOUR_MS, orderRoom } from './order-pace.ts'
import type { WantedName } from './wanted-names.ts'

/** How long a node holds a name without renewing the hold, in milliseconds: as long as its lease (D56). */
export const HOLD_MS = 10_000

const WEEK_MS = 7 * 24 * HOUR_MS

/** Another node has taken the name, since this one stood still for too long. */
export class TakenOver extends Error {
  override readonly name = 'TakenOver'
}

interface KeptNamesOptions extends Pick<ControlTools, 'store' | 'sealer' | 'ids' | 'now'> {
  /** Unique among all processes. */
  readonly holder: string
  readonly ordersPerHour: number
}

/** What is kept after a step. */
interface NameStep {
  readonly stage: NameStage
  readonly dueInMs: number
  readonly state: NameState
  /** The private key for the order in progress, in PEM. Omitted: unchanged. Empty: there is none. */
  readonly key?: string
}

/**
 * Each step is one transaction. It first checks that this node still holds the name, and also updates the status of the
 * resources that asked for the certificate.
 */
export class NameStore {
  readonly #options: KeptNamesOptions

  constructor(options: KeptNamesOptions) {
    this.#options = options
  }

  /** Stores the result of a step. */
  async keep(wanted: WantedName, step: NameStep): Promise<void> {
    await this.#holding(wanted.name, async (writer) => {
      await this.#put(writer, wanted, step, step.state.certificateId ?? null)
    })
  }

  /** Whether an order may begin now; one that is not urgent waits for its turn. */
  async hasRoom({ isUrgent }: { readonly isUrgent: boolean }): Promise<boolean> {
    return this.#options.store.read(({ certificates }) => this.#hasRoom(certificates, isUrgent))
  }

  /** Begins an order, unless there were too many in the last hour, or too many names in the last week; returns whether it did. */
  async begin(wanted: WantedName, { isUrgent, ...step }: NameStep & { readonly isUrgent: boolean }): Promise<boolean> {
    const { ids } = this.#options
    const { name, perWeek } = wanted
    return this.#holding(name, async (writer) => {
      if (perWeek !== undefined && !(await writer.certificates.countName(name, perWeek, WEEK_MS))) return false
      const hasRoom = () => this.#hasRoom(writer.certificates, isUrgent)
      if (!(await writer.certificates.beginOrder(ids.next('order_'), { hasRoom, countedMs: HOUR_MS }))) return false
      await this.#put(writer, wanted, step, step.state.certificateId ?? null)
      return true
    })
  }

  /** Stores a certificate, in place of the former one, with the state that follows from it. Returns its id. */
  async issued(
    wanted: WantedName,
    {
      pair,
      former,
      step,
    }: { pair: { cert: string; key: string }; former: string | undefined; step: Omit<NameStep, 'key'> },
  ): Promise<string> {
    const { sealer, ids, now } = this.#options
    const { name } = wanted
    const fields = issuedCertificate(pair, { issued_at: timestamp(now()), issued_for: name })
    const { kind, secrets, prefix } = tlsCertificates
    return this.#holding(name, async (writer) => {
      const before = former === undefined ? undefined : await writer.lock(kind, former)
      const isOurs = before?.fields.issued_for === name
      const id = before && isOurs ? before.id : ids.next(prefix)
      if (before && isOurs) {
        // Fields that people have written stay.
        const { description, metadata } = before.fields
        const renewed = { ...fields, description, metadata }
        await writer.replaceFields(id, sealFields(sealer, secrets, renewed, resourceAt(id)))
      } else {
        const row = { id, kind, parentId: null, ownerId: null, createdAt: timestamp(now()) }
        await writer.insert({ ...row, fields: sealFields(sealer, secrets, fields, resourceAt(id)) })
      }
      writer.changed(kind, id)
      const state = { ...step.state, certificateId: id }
      await this.#put(writer, wanted, { ...step, state, key: '' }, id)
      await this.#removeChallenge(writer, name)
      return id
    })
  }

  /** Removes a name for which no certificate is wanted any more. */
  async forget(name: string): Promise<void> {
    await this.#holding(name, async (writer) => {
      await this.#removeChallenge(writer, name)
      await writer.certificates.forget(name)
    })
  }

  /** Makes the data planes of all nodes answer a challenge. */
  async putChallenge(challenge: StoredChallenge): Promise<void> {
    await this.#holding(challenge.name, async (writer) => {
      await writer.certificates.putChallenge(challenge)
      writer.changed(CHALLENGE, challenge.name)
    })
  }

  async removeChallenge(name: string): Promise<void> {
    await this.#holding(name, (writer) => this.#removeChallenge(writer, name))
  }

  async challenge(name: string): Promise<StoredChallenge | undefined> {
    const [found] = await this.#options.store.read(({ certificates }) => certificates.challenges([name]))
    return found
  }

  /** The certificate of a name, if there is one and this server ordered it. */
  async certificate(name: string, id: string | undefined): Promise<KeptCertificate | undefined> {
    if (id === undefined) return undefined
    const row = await this.#options.store.read((reader) => reader.resource(tlsCertificates.kind, id))
    if (row?.fields.issued_for !== name) return undefined
    const { certificate_pem: cert, not_before, not_after, issued_at } = row.fields
    const life = { notBefore: Date.parse(String(not_before)), notAfter: Date.parse(String(not_after)) }
    const isRenewalAsked = row.fields[RENEWAL_ASKED] === true
    return { id: row.id, cert: String(cert), ...life, issuedAt: Date.parse(String(issued_at)), isRenewalAsked }
  }

  /** The private key for the order of a name. */
  openKey(name: string, sealed: string): string {
    return this.#options.sealer.open(sealed, orderAt(name))
  }

  /** Renews the hold on the name; false if another node has it. */
  async holdOn(name: string): Promise<boolean> {
    return this.#options.store.write(({ certificates }) => certificates.hold(name, this.#options.holder, HOLD_MS))
  }

  /** Takes a name that is due; undefined if another node was faster. */
  async take(name: string): Promise<ManagedName | undefined> {
    return this.#options.store.write(({ certificates }) => certificates.take(name, this.#options.holder, HOLD_MS))
  }

  /** Schedules another attempt after interrupted work. */
  async postpone(name: string, inMs: number): Promise<void> {
    await this.#options.store.write(({ certificates }) => certificates.postpone(name, this.#options.holder, inMs))
  }

  async letGo(name: string): Promise<void> {
    await this.#options.store.write(({ certificates }) => certificates.letGo(name, this.#options.holder))
  }

  async #hasRoom(orders: CertificateReader, isUrgent: boolean): Promise<boolean> {
    const { urgent, paced } = await orderRoom(orders, this.#options.ordersPerHour)
    return (isUrgent ? urgent : paced) > 0
  }

  async #put(writer: Writer, wanted: WantedName, step: NameStep, certificateId: string | null): Promise<void> {
    const { sealer, now } = this.#options
    const { name, domainIds } = wanted
    const { stage, dueInMs, state, key } = step
    if (key) await holdKey(writer, sealer)
    const orderKey =
      key === undefined
        ? ((await writer.certificates.managedName(name))?.orderKey ?? '')
        : key && sealer.seal(key, orderAt(name))
    await writer.certificates.keep(name, { stage, dueInMs, orderKey, state: JSON.stringify(state) })
    const status = statusOf(state, now() + dueInMs)
    for (const id of domainIds) await tell(writer, id, certificateId, status)
  }

  async #removeChallenge(writer: Writer, name: string): Promise<void> {
    await writer.certificates.removeChallenge(name)
    writer.changed(CHALLENGE, name)
  }

  async #holding<T>(name: string, work: (writer: Writer) => Promise<T>): Promise<T> {
    return this.#options.store.write(async (writer) => {
      if (!(await writer.certificates.hold(name, this.#options.holder, HOLD_MS))) throw new TakenOver()
      return work(writer)
    })
  }
}

export interface KeptCertificate {
  readonly id: string
  /** With its chain, in PEM. */
  readonly cert: string
  /** In milliseconds since 1970, as are the next two. */
  readonly notBefore: number
  readonly notAfter: number
  readonly issuedAt: number
  /** Whether a renewal was requested through the API. */
  readonly isRenewalAsked: boolean
}

/** Updates the certificate status of a reserved domain or an agent ingress. */
export async function tell(
  writer: Writer,
  id: string,
  certificateId: string | null,
  status: ManagedStatus,
): Promise<void> {
  const { kind } = id.startsWith(agentIngresses.prefix) ? agentIngresses : reservedDomains
  const row = await writer.lock(kind, id)
  // Deleted meanwhile, or it has a certificate of its own by now.
  if (!row?.fields.certificate_management_policy) return
  const managed: ManagedCertificate = { certificate_id: certificateId, status }
  if (isDeepStrictEqual(row.fields.managed, managed)) return
  await writer.replaceFields(id, { ...row.fields, managed })
  await writer.setReferences(id, CERTIFICATE_SLOT, certificateId === null ? [] : [certificateId], false)
  writer.changed(kind, id)
}
