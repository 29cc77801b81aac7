/**
 * Gets one name its certificate: decides what is to be done, and does it step by step. After each step what it came to is
 * kept, so that whoever comes next goes on from there: an order that was begun is never begun again, and one that was
 * finalized is only downloaded.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { Clock } from '../lib/clock.ts'
import type { Logger } from '../lib/log/log.ts'
import { Refusal } from '../model/errors.ts'
import type { NameChallenge } from '../planes/port.ts'
import { type ManagedName, nameStage } from '../store/certificate-reader.ts'
import { type AcmeAccount, newPrivateKey } from './accounts.ts'
import type { AcmeAuthority, AcmeChallenge, AcmeOrder, ChallengeKind } from './authority.ts'
import { type DnsRecords, recordOf } from './dns-records.ts'
import { AcmeFault } from './fault.ts'
import { type KeptCertificate, type KeptNames, TakenOver } from './kept-names.ts'
import { type NameState, readState } from './name-state.ts'
import { renewalId } from './renewal-info.ts'
import { type OrderTimes, renewalTime, retryPause, urgentTime } from './timing.ts'
import { usableLife } from './usable-life.ts'
import type { WantedName } from './wanted-names.ts'

export interface OrderWorkOptions {
  readonly names: KeptNames
  readonly account: AcmeAccount
  readonly now: Clock
  readonly random: () => number
  readonly log: Logger
  /** Has every data plane of this node answer a challenge; gives whether all of them do. */
  readonly showChallenge: (challenge: NameChallenge) => Promise<boolean>
  /** How many other nodes there are: they hear of a challenge through the database. */
  readonly otherNodes: () => number
  readonly dns: DnsRecords | undefined
  /** The URL of the directory: orders at another one are of no use. */
  readonly directory: string
  /** The id of a certificate that was issued for a name before. */
  readonly issuedFor: (name: string) => string | undefined
  readonly times: OrderTimes
}

/** What came of working on a name. */
export type WorkOutcome = 'issued' | 'failed' | 'waiting' | 'kept'

/** How long other nodes have to hear of a challenge, in milliseconds. */
const OTHER_NODES_MS = 2000

/** When a name that exceeds the operator's bound is looked at again, in milliseconds. */
const NEXT_TURN_MS = 60_000

export class OrderWork {
  readonly #options: OrderWorkOptions
  readonly #wanted: WantedName
  readonly #signal: AbortSignal
  #state: NameState
  #key: string
  #certificate: KeptCertificate | undefined
  /** When the authority wants to be asked again when to renew, from now, in milliseconds. */
  #askAgainMs = Number.POSITIVE_INFINITY

  constructor(options: OrderWorkOptions, work: { taken: ManagedName; wanted: WantedName; signal: AbortSignal }) {
    const { taken, wanted, signal } = work
    this.#options = options
    this.#wanted = wanted
    this.#signal = signal
    const state = without(readState(taken.state), 'isUnwanted')
    const isElsewhere = state.order !== undefined && state.order.directory !== options.directory
    this.#state = isElsewhere ? without(state, 'order') : state
    this.#key = taken.orderKey === '' ? '' : options.names.openKey(taken.name, taken.orderKey)
  }

  /** Does what is due. Rejects with `TakenOver` when another node has the name, and when the store is away. */
  async run(): Promise<WorkOutcome> {
    const { names, issuedFor } = this.#options
    const { name } = this.#wanted
    this.#certificate =
      (await names.certificate(name, this.#state.certificateId)) ?? (await names.certificate(name, issuedFor(name)))
    if (this.#certificate) this.#state = { ...this.#state, certificateId: this.#certificate.id }
    else this.#state = without(this.#state, 'certificateId', 'renewsAt', 'window')
    try {
      if (!this.#state.order && (await this.#isGood())) return 'kept'
      return await this.#order()
    } catch (error) {
      if (error instanceof TakenOver || this.#signal.aborted) throw error
      return this.#failed(error)
    }
  }

  /** Whether the certificate there is can stay for now; then it is looked at again in time. */
  async #isGood(): Promise<boolean> {
    const { now, random, log, times } = this.#options
    const certificate = this.#certificate
    if (!certificate) return false
    let renewsAt = this.#state.renewsAt ?? renewalTime(certificate, random)
    let { window } = this.#state
    try {
      const authority = await this.#options.account.authority()
      const told = await authority.renewalWindow(certificate.cert, times.leastAskMs)
      // Drawn once for each window, so that asking again does not move it.
      if (told && (told.start !== window?.start || told.end !== window.end)) {
        renewsAt = told.start + random() * (told.end - told.start)
        window = { start: told.start, end: told.end }
      }
      if (told) this.#askAgainMs = told.askAgainMs
    } catch (err) {
      // Without its hint there is still the time that was set before.
      log.debug({ err, name: this.#wanted.name }, 'the certificate authority does not say when to renew')
    }
    if (certificate.isRenewalAsked) renewsAt = Math.min(renewsAt, now())
    renewsAt = Math.max(renewsAt, this.#earliestRenewal(certificate))
    this.#state = { ...this.#state, renewsAt, ...(window && { window }) }
    if (renewsAt <= now()) return false
    this.#state = without(this.#state, 'startedAt', 'failures', 'fault')
    await this.#keep(nameStage.renewal, Math.min(renewsAt - now(), this.#askAgainMs))
    return true
  }

  /**
   * The first replacement before its time is at once: the certificate may be revoked. Further ones wait longer and longer,
   * since an authority may say the same of whatever it issues.
   */
  #earliestRenewal(certificate: KeptCertificate): number {
    const { random, times } = this.#options
    const { hurried = 0 } = this.#state
    if (hurried === 0) return 0
    return certificate.issuedAt + retryPause(hurried, random, { life: certificate, firstPauseMs: times.firstPauseMs })
  }

  async #order(): Promise<WorkOutcome> {
    const { now, directory } = this.#options
    const { name, keyType } = this.#wanted
    if (name.startsWith('*.') && !this.#options.dns) throw new AcmeFault('CERTIFICATE_NEEDS_DNS', '')
    const authority = await this.#options.account.authority()
    if (!this.#state.order) {
      if (!(await this.#options.names.hasRoom({ isUrgent: now() >= this.#urgentAt }))) return this.#wait()
      const key = await newPrivateKey(keyType)
      const order = { url: '', directory, isAsked: true }
      // Kept before it is begun: after a crash it goes on with the same key.
      if (!(await this.#count({ ...this.#state, order, startedAt: this.#state.startedAt ?? now() }, key)))
        return 'waiting'
      this.#key = key
      return this.#finish(authority, await this.#ask(authority))
    }
    const order = await this.#begun(authority)
    return order ? this.#finish(authority, order) : 'waiting'
  }

  async #finish(authority: AcmeAuthority, order: AcmeOrder): Promise<WorkOutcome> {
    await this.#take(await authority.download(await this.#proven(authority, order)))
    return 'issued'
  }

  /** From when on it does not wait for its turn, in milliseconds since 1970. */
  get #urgentAt(): number {
    const { window } = this.#state
    if (!this.#certificate || this.#certificate.isRenewalAsked) return 0
    // Past its window it is renewed at once (RFC 9773 §4.2): so an authority says that it is revoked.
    return Math.min(urgentTime(this.#certificate), window?.end ?? Number.POSITIVE_INFINITY)
  }

  /** Waits for its turn, and is looked at earlier when the authority wants to be asked: it may be revoked meanwhile. */
  async #wait(): Promise<WorkOutcome> {
    const waitMs = Math.min(this.#urgentAt - this.#options.now(), this.#askAgainMs)
    if (this.#certificate) await this.#keep(nameStage.waiting, Math.max(0, waitMs))
    else await this.#keep(this.#stage, NEXT_TURN_MS)
    return 'waiting'
  }

  /** Counts one more order and keeps `state`; false when others were faster to begin theirs, and the name waits. */
  async #count(state: NameState, key?: string): Promise<boolean> {
    // An order under way was counted when it was its turn.
    const isUrgent = this.#state.order !== undefined || this.#options.now() >= this.#urgentAt
    const step = { stage: nameStage.ordering, dueInMs: 0, state, isUrgent, ...(key !== undefined && { key }) }
    const mayBegin = await this.#options.names.begin(this.#wanted, step)
    if (mayBegin) this.#state = state
    else await this.#keep(this.#stage, NEXT_TURN_MS)
    return mayBegin
  }

  /** The order under way, as it is now; undefined when it waits for its turn. */
  async #begun(authority: AcmeAuthority): Promise<AcmeOrder | undefined> {
    const { directory } = this.#options
    const { url = '', isAsked = false } = this.#state.order ?? {}
    if (url !== '') return authority.order(url)
    const order = { url: '', directory, isAsked: true }
    if (!isAsked) {
      // It was refused for a while, and is counted already.
      this.#state = { ...this.#state, order }
      await this.#keep(nameStage.ordering, 0)
      return this.#ask(authority)
    }
    // We died, or heard nothing, after the authority was asked. Where it does not say what came of it, another one counts.
    const found = await authority.unfinished(this.#wanted.name)
    if (found) return this.#known(found, 'certificate order found again')
    return (await this.#count({ ...this.#state, order })) ? this.#ask(authority) : undefined
  }

  async #ask(authority: AcmeAuthority): Promise<AcmeOrder> {
    try {
      return await this.#known(await this.#newOrder(authority, this.#wanted.name), 'certificate ordered')
    } catch (error) {
      if (error instanceof AcmeFault && !error.isUnsure) {
        this.#state = { ...this.#state, order: { url: '', directory: this.#options.directory } }
      }
      throw error
    }
  }

  async #known(order: AcmeOrder, event: string): Promise<AcmeOrder> {
    const { directory, log } = this.#options
    this.#state = { ...this.#state, order: { url: order.url, directory } }
    await this.#keep(nameStage.ordering, 0)
    log.info({ name: this.#wanted.name, order: order.url }, event)
    return order
  }

  async #newOrder(authority: AcmeAuthority, name: string): Promise<AcmeOrder> {
    const { isReplaced, window } = this.#state
    // Only an authority that gives hints knows what it means to replace a certificate.
    const replaces = this.#certificate && window && !isReplaced ? renewalId(this.#certificate.cert) : undefined
    if (replaces === undefined) return authority.begin(name)
    try {
      return await authority.begin(name, replaces)
    } catch (error) {
      if (!(error instanceof AcmeFault) || error.code !== 'CERTIFICATE_REFUSED') throw error
      // RFC 9773 §5: it was replaced already, or is not known there.
      this.#state = { ...this.#state, isReplaced: true }
      return authority.begin(name)
    }
  }

  /** Follows the order until there is a certificate. */
  async #proven(authority: AcmeAuthority, begun: AcmeOrder): Promise<AcmeOrder> {
    const { orderLooks, orderLooksMs } = this.#options.times
    let order = begun
    let isShown = false
    let isFinalized = false
    for (let look = 0; look < orderLooks; look++) {
      if (look > 0) {
        await pause(orderLooksMs[Math.min(look, orderLooksMs.length) - 1], undefined, { signal: this.#signal })
        order = await authority.order(order.url)
      }
      if (order.status === 'valid') return order
      if (order.status === 'invalid') throw await this.#whyInvalid(authority, order)
      if (order.status === 'pending' && !isShown) {
        await this.#prove(authority, order)
        isShown = true
      }
      if (order.status === 'ready' && !isFinalized) {
        isFinalized = true
        order = await authority.finalize(order, this.#wanted.name, this.#key)
        if (order.status === 'valid') return order
      }
    }
    // It is gone on with later, after longer and longer pauses: orders that never end must not keep others from their turn.
    throw new AcmeFault('AUTHORITY_UNAVAILABLE', `Its order is still ${order.status}.`)
  }

  async #whyInvalid(authority: AcmeAuthority, order: AcmeOrder): Promise<AcmeFault> {
    const [authorization] = await authority.authorizations(order)
    const problem = authorization?.problem ?? order.problem
    const code = problem && problem.code !== 'CERTIFICATE_REFUSED' ? problem.code : 'CERTIFICATE_REFUSED'
    return new AcmeFault(code, problem?.detail ?? '', { isOrderLost: true })
  }

  /** Shows the authority that the name is served here, and says so. */
  async #prove(authority: AcmeAuthority, order: AcmeOrder): Promise<void> {
    const { names } = this.#options
    const [authorization] = await authority.authorizations(order)
    const shown = await names.challenge(this.#wanted.name)
    if (!authorization) throw new AcmeFault('AUTHORITY_UNAVAILABLE', 'Its order names nothing to prove.')
    if (authorization.status !== 'pending') return
    const { challenges } = authorization
    // What was shown for this order already is still being looked at.
    const former = challenges.find((each) => each.kind === shown?.kind && each.token === shown.token)
    const challenge = former ?? this.#choose(challenges)
    const { kind, token, answer } = challenge
    await names.show({ name: this.#wanted.name, kind, token, answer })
    if (kind === 'dns-01') await this.#setRecord(answer)
    else await this.#showEverywhere({ name: this.#wanted.name, kind, token, answer })
    await authority.ready(challenge)
  }

  /** Of those that the authority offers; another one after each failure, since a port may be closed on the way. */
  #choose(offered: readonly AcmeChallenge[]): AcmeChallenge {
    const usable: readonly ChallengeKind[] = [
      ...(this.#options.dns ? (['dns-01'] as const) : []),
      ...(this.#wanted.name.startsWith('*.') ? [] : (['http-01', 'tls-alpn-01'] as const)),
    ]
    const possible = usable.flatMap((kind) => offered.find((each) => each.kind === kind) ?? [])
    const chosen = possible[(this.#state.failures ?? 0) % Math.max(possible.length, 1)]
    if (chosen) return chosen
    const words = offered.map(({ kind }) => kind).join(', ') || 'nothing'
    throw new AcmeFault('CHALLENGE_FAILED', `It offers ${words} as a proof, none of which is set up here.`)
  }

  async #showEverywhere(challenge: NameChallenge): Promise<void> {
    if (!(await this.#options.showChallenge(challenge))) throw new AcmeFault('CHALLENGE_NOT_SHOWN', '')
    if (this.#options.otherNodes() > 0) await pause(OTHER_NODES_MS, undefined, { signal: this.#signal })
  }

  async #setRecord(value: string): Promise<void> {
    try {
      await this.#options.dns?.present(recordOf(this.#wanted.name), value)
    } catch (cause) {
      throw new AcmeFault('DNS_RECORD_FAILED', cause instanceof Error ? cause.message : '', { cause })
    }
  }

  /** Nothing depends on the record being gone, so that a failure is only logged. */
  async #removeRecord(): Promise<void> {
    const { names, dns, log } = this.#options
    const { name } = this.#wanted
    const shown = await names.challenge(name)
    if (shown?.kind !== 'dns-01') return
    await dns?.cleanup(recordOf(name), shown.answer).catch((err: unknown) => {
      log.warn({ err, name }, 'the DNS record that proved a name cannot be removed')
    })
  }

  /** Keeps the certificate that came. */
  async #take(cert: string): Promise<void> {
    const { names, now, random, log } = this.#options
    const { name } = this.#wanted
    const life = usableLife(cert, name, now())
    const renewsAt = renewalTime(life, random)
    await this.#removeRecord()
    const before = this.#certificate
    const isEarly = before !== undefined && now() < renewalTime(before, () => 0)
    const state: NameState = { renewsAt, ...(isEarly && { hurried: (this.#state.hurried ?? 0) + 1 }) }
    try {
      const pair = { cert, key: this.#key }
      // Looked at again at once, for the authority may have a hint on when to renew it.
      const step = { stage: nameStage.renewal, dueInMs: 0, state }
      const id = await names.issued(this.#wanted, { pair, former: before?.id, step })
      log.info({ name, certificate: id, renewsAt: new Date(renewsAt).toISOString() }, 'certificate issued')
    } catch (cause) {
      if (!(cause instanceof Refusal) || cause.code === 'STORE_UNAVAILABLE') throw cause
      throw new AcmeFault('CERTIFICATE_UNUSABLE', cause.message, { cause, isOrderLost: true })
    }
  }

  /** Keeps why it failed, and when it is tried again. */
  async #failed(error: unknown): Promise<WorkOutcome> {
    const { names, account, now, random, log, times } = this.#options
    const { name } = this.#wanted
    if (!(error instanceof AcmeFault)) throw error
    if (error.isAccountLost) await account.forget()
    const isLost = error.isOrderLost || error.isAccountLost
    if (isLost) {
      await this.#removeRecord()
      await names.unshow(name)
    }
    const failures = (this.#state.failures ?? 0) + 1
    const { firstPauseMs } = times
    const ownMs = retryPause(failures, random, { life: this.#certificate, firstPauseMs })
    const waitMs = Math.max(ownMs, error.retryAfterMs ?? 0)
    const kept = isLost ? without(this.#state, 'order') : this.#state
    this.#state = {
      ...kept,
      failures,
      fault: { code: error.code, msg: error.message },
      startedAt: kept.startedAt ?? now(),
    }
    const retriesAt = new Date(now() + waitMs).toISOString()
    const serving = this.#certificate ? 'the former certificate' : "one of the server's own authority"
    log.warn({ name, err: error, code: error.code, retriesAt, serving }, 'there is no certificate for a name yet')
    const step = { stage: this.#stage, dueInMs: waitMs, state: this.#state }
    await names.keep(this.#wanted, isLost ? { ...step, key: '' } : step)
    return 'failed'
  }

  get #stage() {
    if (this.#state.order) return nameStage.ordering
    return this.#certificate ? nameStage.renewal : nameStage.first
  }

  async #keep(stage: (typeof nameStage)[keyof typeof nameStage], dueInMs: number): Promise<void> {
    await this.#options.names.keep(this.#wanted, { stage, dueInMs, state: this.#state })
  }
}

function without<Key extends keyof NameState>(state: NameState, ...keys: readonly Key[]): Omit<NameState, Key> {
  return Object.fromEntries(Object.entries(state).filter(([key]) => !keys.includes(key as Key))) as Omit<NameState, Key>
}
