/** Gets the certificate of one name: decides what to do, and does it step by step. */
import { setTimeout as pause } from 'node:timers/promises'
import type { NameChallenge } from '../../link/planes/plane-calls.ts'
import { Refusal } from '../../model/errors.ts'
import { type ManagedName, nameStage } from '../store/certificate-reader.ts'
import type { ControlTools } from '../store/control-tools.ts'
import { type AcmeAccount, newPrivateKey } from './accounts.ts'
import type { AcmeAuthority, AcmeChallenge, AcmeOrder, ChallengeKind } from './acme-authority.ts'
import { type DnsRecords, recordOf } from './dns-records.ts'
import { type NameState, readState } from './name-state.ts'
import { type KeptCertificate, type NameStore, TakenOver } from './name-store.ts'
import { AcmeFault, reasonOf } from './order-fault.ts'
import { type OrderTimes, renewalTime, retryPause, urgentTime } from './order-times.ts'
import { renewalId } from './renewal-info.ts'
import { usableLife } from './usable-life.ts'
import type { WantedName, WantedNames } from './wanted-names.ts'

export interface OrderWorkOptions extends Pick<ControlTools, 'now' | 'log'> {
  readonly names: NameStore
  readonly account: AcmeAccount
  readonly random: () => number
  /** Makes every data plane of this node answer a challenge; returns whether all of them do. */
  readonly showChallenge: (challenge: NameChallenge) => Promise<boolean>
  /** The same at all other nodes, if there are any. */
  readonly showAtOtherNodes: (challenge: NameChallenge) => Promise<boolean>
  readonly dns: DnsRecords | undefined
  /** The URL of the directory; orders at another one are discarded. */
  readonly directory: string
  /** Knows the certificates that were issued before. */
  readonly wanted: Pick<WantedNames, 'issuedFor'>
  readonly times: OrderTimes
}

/** The outcome of the work on a name. */
export type WorkOutcome = 'issued' | 'failed' | 'waiting' | 'kept'

/** How long nodes that did not answer have to learn of a challenge through the database, in milliseconds. */
const OTHER_NODES_MS = 2000

/** When a name that exceeds the operator's limit is checked again, in milliseconds. */
const NEXT_TURN_MS = 60_000

/**
 * The result of each step is stored, so that any node can continue from there. An order that was begun is never begun again,
 * and one that was finalized is only downloaded.
 */
export class OrderWork {
  readonly #options: OrderWorkOptions
  readonly #wanted: WantedName
  readonly #signal: AbortSignal
  #state: NameState
  #key: string
  #certificate: KeptCertificate | undefined
  /** When to ask the authority again for the renewal window, from now, in milliseconds. */
  #askAgainMs = Number.POSITIVE_INFINITY

  constructor(options: OrderWorkOptions, work: { taken: ManagedName; wanted: WantedName; signal: AbortSignal }) {
    const { taken, wanted, signal } = work
    this.#options = options
    this.#wanted = wanted
    this.#signal = signal
    const state = without(readState(taken.state), 'isUnwanted')
    const isOfOtherDirectory = state.order !== undefined && state.order.directory !== options.directory
    this.#state = isOfOtherDirectory ? without(state, 'order') : state
    this.#key = taken.orderKey === '' ? '' : options.names.openKey(taken.name, taken.orderKey)
  }

  /** Does what is due. Rejects with `TakenOver` if another node has the name, and if the store is unavailable. */
  async run(): Promise<WorkOutcome> {
    const { names, wanted } = this.#options
    const { name } = this.#wanted
    this.#certificate =
      (await names.certificate(name, this.#state.certificateId)) ??
      (await names.certificate(name, wanted.issuedFor(name)))
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

  /** Whether the present certificate can stay for now; then its next check is scheduled. */
  async #isGood(): Promise<boolean> {
    const { now, random, log, times } = this.#options
    const certificate = this.#certificate
    if (!certificate) return false
    let renewsAt = this.#state.renewsAt ?? renewalTime(certificate, random)
    let { window } = this.#state
    try {
      const authority = await this.#options.account.authority()
      const hint = await authority.renewalWindow(certificate.cert, times.leastAskMs)
      // Drawn once for each window, so that asking again does not move it.
      if (hint && (hint.start !== window?.start || hint.end !== window.end)) {
        renewsAt = hint.start + random() * (hint.end - hint.start)
        window = { start: hint.start, end: hint.end }
      }
      if (hint) this.#askAgainMs = hint.askAgainMs
    } catch (err) {
      // Without the hint, the time that was set before counts.
      log.debug({ err, name: this.#wanted.name }, 'cannot get the renewal window from the certificate authority')
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
   * The first early replacement happens at once, since the certificate may be revoked. Further ones wait longer and longer,
   * since an authority may request early renewal of whatever it issues.
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
      // Stored before the order begins: after a crash it continues with the same key.
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

  /** From when on the renewal does not wait for its turn, in milliseconds since 1970. */
  get #urgentAt(): number {
    const { window } = this.#state
    if (!this.#certificate || this.#certificate.isRenewalAsked) return 0
    // After the window it is renewed at once (RFC 9773 §4.2): this is how an authority announces a revocation.
    return Math.min(urgentTime(this.#certificate), window?.end ?? Number.POSITIVE_INFINITY)
  }

  /** Waits for its turn, but asks the authority in between: the certificate may be revoked meanwhile. */
  async #wait(): Promise<WorkOutcome> {
    const waitMs = Math.min(this.#urgentAt - this.#options.now(), this.#askAgainMs)
    if (this.#certificate) await this.#keep(nameStage.waiting, Math.max(0, waitMs))
    else await this.#keep(this.#stage, NEXT_TURN_MS)
    return 'waiting'
  }

  /** Counts one more order and stores `state`; false if other names used up the limit first, so that this one waits. */
  async #count(state: NameState, key?: string): Promise<boolean> {
    // An order in progress was counted when it began.
    const isUrgent = this.#state.order !== undefined || this.#options.now() >= this.#urgentAt
    const step = { stage: nameStage.ordering, dueInMs: 0, state, isUrgent, ...(key !== undefined && { key }) }
    const mayBegin = await this.#options.names.begin(this.#wanted, step)
    if (mayBegin) this.#state = state
    else await this.#keep(this.#stage, NEXT_TURN_MS)
    return mayBegin
  }

  /** The order in progress, as it is now; undefined if it waits for its turn. */
  async #begun(authority: AcmeAuthority): Promise<AcmeOrder | undefined> {
    const { directory } = this.#options
    const { url = '', isAsked = false } = this.#state.order ?? {}
    if (url !== '') return authority.order(url)
    const order = { url: '', directory, isAsked: true }
    if (!isAsked) {
      // The order was refused temporarily, and is counted already.
      this.#state = { ...this.#state, order }
      await this.#keep(nameStage.ordering, 0)
      return this.#ask(authority)
    }
    // A crash or a lost response: the authority may have the order. If it cannot be found there, a new one is counted.
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
    // Only an authority with renewal windows understands `replaces`.
    const replaces = this.#certificate && window && !isReplaced ? renewalId(this.#certificate.cert) : undefined
    if (replaces === undefined) return authority.begin(name)
    try {
      return await authority.begin(name, replaces)
    } catch (error) {
      if (!(error instanceof AcmeFault) || error.code !== 'CERTIFICATE_REFUSED') throw error
      // RFC 9773 §5: the certificate was replaced already, or is unknown there.
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
    // The order is continued later, with growing pauses: orders that never end must not block others.
    throw new AcmeFault('AUTHORITY_UNAVAILABLE', `Its order is still ${order.status}.`)
  }

  async #whyInvalid(authority: AcmeAuthority, order: AcmeOrder): Promise<AcmeFault> {
    const [authorization] = await authority.authorizations(order)
    const problem = authorization?.problem ?? order.problem
    const code = problem && problem.code !== 'CERTIFICATE_REFUSED' ? problem.code : 'CERTIFICATE_REFUSED'
    return new AcmeFault(code, problem?.detail ?? '', { isOrderLost: true })
  }

  /** Sets up the response to a challenge, and tells the authority that it is ready. */
  async #prove(authority: AcmeAuthority, order: AcmeOrder): Promise<void> {
    const { names } = this.#options
    const [authorization] = await authority.authorizations(order)
    const shown = await names.challenge(this.#wanted.name)
    if (!authorization) throw new AcmeFault('AUTHORITY_UNAVAILABLE', 'Its order has no authorization.')
    if (authorization.status !== 'pending') return
    const { challenges } = authorization
    // The authority may still be checking the challenge that was set up for this order before.
    const former = challenges.find((each) => each.kind === shown?.kind && each.token === shown.token)
    const challenge = former ?? this.#choose(challenges)
    const { kind, token, answer } = challenge
    await names.putChallenge({ name: this.#wanted.name, kind, token, answer })
    if (kind === 'dns-01') await this.#setRecord(answer)
    else await this.#showEverywhere({ name: this.#wanted.name, kind, token, answer })
    await authority.ready(challenge)
  }

  /** Chooses a challenge that the authority offers; another one after each failure, since a port may be closed. */
  #choose(offered: readonly AcmeChallenge[]): AcmeChallenge {
    const usable: readonly ChallengeKind[] = [
      ...(this.#options.dns ? (['dns-01'] as const) : []),
      ...(this.#wanted.name.startsWith('*.') ? [] : (['http-01', 'tls-alpn-01'] as const)),
    ]
    const possible = usable.flatMap((kind) => offered.find((each) => each.kind === kind) ?? [])
    const chosen = possible[(this.#state.failures ?? 0) % Math.max(possible.length, 1)]
    if (chosen) return chosen
    const words = offered.map(({ kind }) => kind).join(', ') || 'nothing'
    throw new AcmeFault('CHALLENGE_FAILED', `It offers ${words} as a proof, and none of these is set up here.`)
  }

  async #showEverywhere(challenge: NameChallenge): Promise<void> {
    const { showChallenge, showAtOtherNodes } = this.#options
    const begunAt = performance.now()
    const [isShown, isShownByOthers] = await Promise.all([showChallenge(challenge), showAtOtherNodes(challenge)])
    if (!isShown) throw new AcmeFault('CHALLENGE_NOT_SHOWN', '')
    const leftMs = begunAt + OTHER_NODES_MS - performance.now()
    if (!isShownByOthers && leftMs > 0) await pause(leftMs, undefined, { signal: this.#signal })
  }

  async #setRecord(value: string): Promise<void> {
    try {
      await this.#options.dns?.present(recordOf(this.#wanted.name), value)
    } catch (cause) {
      throw new AcmeFault('DNS_RECORD_FAILED', cause instanceof Error ? cause.message : '', { cause })
    }
  }

  /** A failure is only logged, since a leftover record does no harm. */
  async #removeRecord(): Promise<void> {
    const { names, dns, log } = this.#options
    const { name } = this.#wanted
    const shown = await names.challenge(name)
    if (shown?.kind !== 'dns-01') return
    await dns?.cleanup(recordOf(name), shown.answer).catch((err: unknown) => {
      log.warn({ reason: reasonOf(err), name }, 'the DNS record that proved a name could not be removed')
    })
  }

  /** Stores the certificate. */
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
      // Checked again at once, since the authority may have a renewal window for it.
      const step = { stage: nameStage.renewal, dueInMs: 0, state }
      const id = await names.issued(this.#wanted, { pair, former: before?.id, step })
      log.info({ name, certificate: id, renewsAt: new Date(renewsAt).toISOString() }, 'certificate issued')
    } catch (cause) {
      if (!(cause instanceof Refusal) || cause.code === 'STORE_UNAVAILABLE') throw cause
      throw new AcmeFault('CERTIFICATE_UNUSABLE', cause.message, { cause, isOrderLost: true })
    }
  }

  /** Stores the reason of a failure, and the time of the next attempt. */
  async #failed(error: unknown): Promise<WorkOutcome> {
    const { names, account, now, random, log, times } = this.#options
    const { name } = this.#wanted
    if (!(error instanceof AcmeFault)) throw error
    if (error.isAccountLost) await account.forget()
    const isLost = error.isOrderLost || error.isAccountLost
    if (isLost) {
      await this.#removeRecord()
      await names.removeChallenge(name)
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
    const reason = reasonOf(error)
    log.warn({ name, reason, code: error.code, retriesAt, serving }, 'no certificate for a name yet; retrying')
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
