/** Works on the names whose certificates are due, a few at a time, and within the operator's limit of orders per hour. */
import { type ManagedName, type NameStage, nameStage } from '../store/certificate-reader.ts'
import type { ControlTools } from '../store/control-tools.ts'
import type { EndpointNames } from './endpoint-names.ts'
import { readState } from './name-state.ts'
import { HOLD_MS, TakenOver } from './name-store.ts'
import { reasonOf } from './order-fault.ts'
import { orderRoom } from './order-pace.ts'
import { OrderWork, type OrderWorkOptions, type WorkOutcome } from './order-work.ts'
import type { WantedName, WantedNames } from './wanted-names.ts'

export interface CertificateOrdersOptions extends OrderWorkOptions, Pick<ControlTools, 'store'> {
  readonly wanted: WantedNames
  /** Names that are wanted while agents are online there. */
  readonly endpoints: Pick<EndpointNames, 'get'> | undefined
  readonly ordersPerHour: number
  /** Why a name may no longer have a certificate: its proof may be gone. */
  readonly whyNotOrder: (name: string) => Promise<string | undefined>
  /** Whether a file on this machine has a certificate for a name; then none is ordered. */
  readonly isInFile: (name: string) => boolean
}

/** Names that are worked on at a time. */
const AT_ONCE = 4

/** How often the hold on a name in progress is renewed, in milliseconds. */
const HOLD_ON_MS = HOLD_MS / 4

/** How long a name that seems unwanted is kept, in milliseconds: this node may not have seen yet that it is wanted. */
const UNWANTED_MS = 10_000

/** How long a name waits after its work was interrupted for a reason of our own, in milliseconds. */
const INTERRUPTED_MS = 15_000

/** How often a name with a certificate file is checked, in milliseconds: the file may be removed. */
const IN_FILE_MS = 600_000

/** How often a name without proof is checked, in milliseconds. */
const UNPROVEN_MS = 3_600_000

/** How long a stopping server waits for work in progress, in milliseconds; finished steps are stored in any case. */
const STOP_MS = 1000

/** Each node looks for due names, and the database decides which node works on which name. Renewals wait for their turn. */
export class CertificateOrders {
  readonly #options: CertificateOrdersOptions
  readonly #running = new Map<string, Promise<void>>()
  readonly #stopping = new AbortController()
  readonly #counts = { issued: 0, failed: 0 }
  #timer: NodeJS.Timeout | undefined
  #round: Promise<void> | undefined
  #isStarted = false
  #isAgain = false
  #isAway = false

  constructor(options: CertificateOrdersOptions) {
    this.#options = options
  }

  /** The outcomes of the work, for the metrics. */
  get counts(): Readonly<Record<'issued' | 'failed', number>> {
    return this.#counts
  }

  async start(): Promise<void> {
    const { store } = this.#options
    // Only one process can have a SQLite database, so nobody else is working on a name.
    if (store.dialect === 'sqlite') await store.write(({ certificates }) => certificates.letGoOfAll())
    this.#isStarted = true
    this.look()
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    clearTimeout(this.#timer)
    const overdue = new Promise<void>((resolve) => setTimeout(resolve, STOP_MS).unref())
    await Promise.race([Promise.allSettled([this.#round, ...this.#running.values()]), overdue])
  }

  /** Looks for names that are due now. */
  look(): void {
    if (!this.#isStarted || this.#stopping.signal.aborted) return
    this.#isAgain = true
    this.#round ??= this.#untilLooked().finally(() => {
      this.#round = undefined
      clearTimeout(this.#timer)
      this.#timer = setTimeout(() => this.look(), this.#options.times.lookMs).unref()
    })
  }

  async #untilLooked(): Promise<void> {
    while (this.#isAgain && !this.#stopping.signal.aborted) {
      this.#isAgain = false
      try {
        for (const name of await this.#due()) await this.#begin(name)
        this.#isAway = false
      } catch (err) {
        const reason = reasonOf(err)
        if (!this.#isAway) this.#options.log.warn({ reason }, 'names that need certificates cannot be read; retrying')
        this.#isAway = true
        return
      }
    }
  }

  /**
   * Orders in progress come first, then names without a certificate, then renewals whose turn it is. Last are names that may
   * have to be renewed: checking one begins no order unless there is room.
   */
  async #due(): Promise<string[]> {
    const { store, ordersPerHour } = this.#options
    const room = AT_ONCE - this.#running.size
    if (room <= 0) return []
    return store.read(async ({ certificates }) => {
      const { urgent, paced } = await orderRoom(certificates, ordersPerHour)
      const found = await certificates.due(nameStage.ordering, room)
      const mayBegin = Math.min(room - found.length, urgent)
      const first = await certificates.due(nameStage.first, mayBegin)
      found.push(...first)
      const waiting = await certificates.waiting(mayBegin - first.length)
      const inTurn = Math.max(0, paced - first.length)
      found.push(...waiting.filter(({ isDue }, i) => isDue || i < inTurn).map(({ name }) => name))
      return [...found, ...(await certificates.due(nameStage.renewal, room - found.length))]
    })
  }

  async #begin(name: string): Promise<void> {
    if (this.#running.has(name)) return
    const taken = await this.#options.names.take(name)
    if (!taken) return
    const work = this.#work(taken).finally(() => {
      this.#running.delete(name)
      this.look()
    })
    this.#running.set(name, work)
  }

  /** Never rejects. */
  async #work(taken: ManagedName): Promise<void> {
    const { names, wanted, endpoints, whyNotOrder, isInFile, log } = this.#options
    const { name } = taken
    const lost = new AbortController()
    const holding = setInterval(() => {
      // If the database is away, the next step cannot be stored, and another node takes the name in time.
      names.holdOn(name).then(
        (isOurs) => isOurs || lost.abort(),
        () => {},
      )
    }, HOLD_ON_MS)
    try {
      const signal = AbortSignal.any([lost.signal, this.#stopping.signal])
      const found = wanted.get(name) ?? (await endpoints?.get(taken))
      const isFile = found !== undefined && isInFile(name)
      const why = found && !isFile ? await whyNotOrder(name) : undefined
      if (isFile) await names.postpone(name, IN_FILE_MS)
      else if (found && why !== undefined) await this.#unproven(taken, { wanted: found, why })
      else if (found) this.#count(await new OrderWork(this.#options, { taken, wanted: found, signal }).run())
      else await this.#unwanted(taken)
    } catch (err) {
      if (this.#stopping.signal.aborted) return
      if (err instanceof TakenOver || lost.signal.aborted) log.info({ name }, 'another node is working on a name')
      else {
        log.warn({ reason: reasonOf(err), name }, 'work on the certificate of a name was interrupted; retrying')
        log.debug({ err, name }, 'where the work was interrupted')
        await names.postpone(name, INTERRUPTED_MS).catch(() => {})
      }
    } finally {
      clearInterval(holding)
      // If this fails, the hold expires by itself.
      await names.letGo(name).catch(() => {})
    }
  }

  async #unwanted(taken: ManagedName): Promise<void> {
    const { names } = this.#options
    const { name, stage } = taken
    const state = readState(taken.state)
    if (state.isUnwanted) {
      await names.forget(name)
      return
    }
    // A name with a certificate is checked as soon as it is wanted again (`lookAgain`).
    const next = state.certificateId === undefined ? nameStage.first : nameStage.renewal
    const step = { stage: stage === nameStage.ordering ? stage : next, dueInMs: UNWANTED_MS }
    await names.keep({ name, keyType: 'ecdsa', domainIds: [] }, { ...step, state: { ...state, isUnwanted: true } })
  }

  /** An existing certificate is served until it expires. */
  async #unproven(taken: ManagedName, { wanted, why }: { wanted: WantedName; why: string }): Promise<void> {
    const { names, now, log } = this.#options
    const { name } = taken
    log.warn({ name }, 'certificate not ordered: the proof that the name belongs here is gone')
    const { startedAt = now(), ...state } = readState(taken.state)
    const fault = { code: 'NAME_NOT_PROVEN', msg: why }
    const stage = taken.stage as NameStage // as it was kept
    await names.keep(wanted, { stage, dueInMs: UNPROVEN_MS, state: { ...state, startedAt, fault } })
  }

  #count(outcome: WorkOutcome): void {
    if (outcome === 'issued' || outcome === 'failed') this.#counts[outcome]++
  }
}
