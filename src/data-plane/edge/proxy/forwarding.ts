/** Sends one request to a service: tries the targets of a backend in turn, and repeats the request when it is safe. */
import type { ByteStream } from '../../../lib/bytes/byte-stream.ts'
import type { HeaderList } from '../../../lib/http/header-list.ts'
import { DialFault } from '../../../model/dial.ts'
import type { VisitorErrorCode } from '../../../model/visitor-errors.ts'
import type {
  BodyReader,
  ResponseHead,
  UpstreamConnection,
  UpstreamFault,
  UpstreamFaultReason,
  UpstreamRequest,
  UpstreamSending,
  UpstreamSink,
} from '../../requests/http-exchange.ts'
import { type Dialling, type DialTarget, dialCode, type FixedTarget, type Target, type Visit } from '../dial.ts'
import { isIdempotent } from '../idempotent.ts'
import type { UpstreamPool } from '../upstream-pool.ts'
import type { VisitorBody } from './request-body.ts'

/** Hears the outcome: exactly one of `fixed`, `respond`, `upgraded` and `failed`, unless it is cancelled. */
export interface ForwardingOwner extends Pick<UpstreamSink, 'inform' | 'respond' | 'upgraded'> {
  /** The visit, for a service that has to be dialled. */
  visit(): Visit
  /** The request is about to be sent, after a service had to be dialled. */
  dialled(): void
  /** The backend has a fixed response. */
  fixed(target: FixedTarget): void
  failed(code: VisitorErrorCode, cause: Error | undefined): void
  /** Our own code threw. */
  broke(error: unknown): void
}

interface ForwardingOptions extends Pick<Dialling, 'targets' | 'ends' | 'offline'> {
  readonly request: UpstreamRequest
  readonly body: VisitorBody
  readonly pool: UpstreamPool
  readonly owner: ForwardingOwner
}

const faultCodes: Readonly<Record<UpstreamFaultReason, VisitorErrorCode>> = {
  closed: 'UPSTREAM_UNREACHABLE',
  invalid: 'UPSTREAM_INVALID',
  head_too_large: 'UPSTREAM_INVALID',
  timeout: 'UPSTREAM_TIMEOUT',
}

export class Forwarding implements UpstreamSink {
  /** The service that the request went to. */
  target: DialTarget | undefined
  /** Whether it was sent on a kept connection. */
  isReused = false
  readonly #options: ForwardingOptions
  readonly #targets: Iterator<Target>
  readonly #isIdempotent: boolean
  /** Why no target so far could be dialled. */
  #fault: VisitorErrorCode
  #cause: Error | undefined
  #sending: UpstreamSending | undefined
  #hasDialled = false
  /** Whether a member of a pool closed without an answer and another was tried. */
  #hasTriedAnother = false
  #isAnswered = false
  #isOver = false

  constructor(options: ForwardingOptions) {
    this.#options = options
    this.#targets = options.targets[Symbol.iterator]()
    this.#fault = options.offline
    this.#isIdempotent = isIdempotent(options.request.method) || options.request.headers.has('idempotency-key')
  }

  start(): void {
    this.#tryNext()
  }

  /** The answer is no longer needed. */
  cancel(): void {
    this.#isOver = true
    this.#sending?.cancel()
  }

  inform(status: number, headers: HeaderList): void {
    if (!this.#isOver) this.#options.owner.inform(status, headers)
  }

  respond(head: ResponseHead, body: BodyReader): void {
    if (this.#answer()) this.#options.owner.respond(head, body)
  }

  upgraded(head: ResponseHead, stream: ByteStream): void {
    if (this.#answer()) this.#options.owner.upgraded(head, stream)
    else stream.reset()
  }

  failed(fault: UpstreamFault): void {
    if (this.#isOver || this.#isAnswered) return
    const { target } = this
    const { body } = this.#options
    body.hold()
    const code = faultCodes[fault.reason]
    const mayRepeat = target && fault.isSilent && this.#mayRepeat(target) && body.isReplayable
    if (mayRepeat && fault.isUntouched && this.isReused) void this.#dial(target)
    else if (mayRepeat && this.#mayTryAnother(target)) {
      this.#hasTriedAnother = true
      this.#fault = code
      this.#cause = fault
      this.#tryNext()
    } else this.#fail(code, fault)
  }

  #answer(): boolean {
    if (this.#isOver || this.#isAnswered) return false
    this.#isAnswered = true
    this.#options.body.forget()
    return true
  }

  #tryNext(): void {
    const { pool, ends, owner } = this.#options
    const next = this.#targets.next()
    if (next.done) {
      this.#fail(this.#fault, this.#cause)
      return
    }
    if (next.value.kind === 'fixed') {
      this.#isOver = true
      owner.fixed(next.value)
      return
    }
    const kept = pool.take(next.value, ends, { mayRepeat: this.#mayRepeat(next.value) })
    if (kept) this.#send(kept, next.value, { isReused: true })
    else void this.#dial(next.value)
  }

  async #dial(target: DialTarget): Promise<void> {
    const { pool, ends, owner } = this.#options
    this.#hasDialled = true
    try {
      const dialled = await pool.open(target, owner.visit(), ends)
      if (this.#isOver) {
        if (!(dialled instanceof DialFault)) pool.give(dialled)
      } else if (dialled instanceof DialFault) {
        const code = dialCode(dialled)
        if (code !== undefined) {
          this.#fault = code
          this.#cause = dialled
        }
        this.#tryNext()
      } else this.#send(dialled, target, { isReused: false })
    } catch (error) {
      owner.broke(error)
    }
  }

  #send(connection: UpstreamConnection, target: DialTarget, { isReused }: { isReused: boolean }): void {
    const { request, body, pool, owner } = this.#options
    this.target = target
    this.isReused = isReused
    if (this.#hasDialled) owner.dialled()
    let sending: UpstreamSending
    try {
      // HTTP/2 has no upgrades: the request is sent without one, and the service answers as it likes.
      sending = connection.send(target.httpVersion === 2 ? { ...request, upgrade: undefined } : request, this)
    } catch (error) {
      pool.give(connection)
      throw error
    }
    if (bindsConnection(request)) pool.retire(connection)
    this.#sending = sending
    const mayTryAgain = isReused || this.#mayTryAnother(target)
    body.sendTo(sending.body, { mayRepeat: mayTryAgain && this.#mayRepeat(target) })
  }

  /**
   * An upstream that closes an HTTP/1.1 connection without an answer may have started on the request. Over HTTP/2 it
   * says whether it has.
   */
  #mayRepeat({ httpVersion }: DialTarget): boolean {
    return this.#isIdempotent || httpVersion === 2
  }

  /** The agent may have just ended. Only once: a request that crashes a service must not crash all of them. */
  #mayTryAnother({ isPooled }: DialTarget): boolean {
    return isPooled === true && !this.#hasTriedAnother
  }

  #fail(code: VisitorErrorCode, cause: Error | undefined): void {
    this.#isOver = true
    this.#options.owner.failed(code, cause)
  }
}

/** With these schemes some services authenticate the whole connection, so it must not be shared with other visitors. */
function bindsConnection({ headers }: UpstreamRequest): boolean {
  const credentials = headers.get('authorization')
  return credentials !== undefined && /^(?:ntlm|negotiate)(?: |$)/i.test(credentials)
}
