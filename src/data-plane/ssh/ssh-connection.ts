/** One SSH connection: decides its logins, and starts its session once the client has proved that it holds a key. */
import type { Peer } from '../../lib/net/peer.ts'
import { fingerprintOf } from '../../lib/ssh-keys/ssh-public-key.ts'
import { refusals } from '../../model/agent-errors.ts'
import { BindRefusal } from '../tunnel/interfaces.ts'
import type { PendingLogin } from '../tunnel/pending-login.ts'
import { type Entry, entryBy } from './certificate-login.ts'
import type { ForwardAddress } from './forward-plan.ts'
import { isCertificate, isProven, isUsable, type KeyOffer } from './proof.ts'
import type { SshContext } from './ssh-context.ts'
import type { ForwardReply, LoginAttempt, SshLink } from './ssh-link.ts'
import { refusalText, SshSession } from './ssh-session.ts'
import type { SshTerminal } from './ssh-terminal.ts'

export interface SshConnectionOptions {
  readonly link: SshLink
  readonly trial: PendingLogin
  readonly peer: Peer
  readonly context: SshContext
}

export class SshConnection {
  readonly #options: SshConnectionOptions
  #failures = 0
  /** How often the client was told that a key would be accepted. */
  #encouraged = 0
  #hasAskedMethods = false
  /** Whether a refusal was shown to the client. */
  #isRefusalShown = false
  /** Who the client has proved to be. */
  #entry: Entry | undefined
  #user = ''
  #session: SshSession | undefined

  constructor(options: SshConnectionOptions) {
    this.#options = options
    options.link.serve(this)
  }

  login(login: LoginAttempt): void {
    this.#decide(login).catch((error: unknown) => {
      this.#options.context.log.error({ peer: this.#options.peer.ip, error }, 'authentication of an SSH client failed')
      this.#options.link.drop('the login could not be decided')
    })
  }

  ready(): void {
    const { link, peer, context, trial } = this.#options
    const entry = this.#entry
    if (!entry) {
      link.drop('nobody logged in')
      return
    }
    trial.passed()
    const { credential, certificate, forced } = entry
    const who = { credentialId: credential.id, certificateId: certificate?.id, user: this.#user, forced }
    this.#session = new SshSession({ link, peer, context, ...who })
    void this.#checkAgain(this.#session, entry)
  }

  forward(address: ForwardAddress, reply: ForwardReply): void {
    if (this.#session) this.#session.forward(address, reply)
    else reply.reject()
  }

  cancel(address: ForwardAddress): void {
    this.#session?.cancel(address)
  }

  terminal(terminal: SshTerminal): void {
    this.#session?.terminal(terminal)
  }

  /** The client asked for something that is not supported: `direct` for -L and -D, `socket` for unix sockets. */
  unserved(what: 'direct' | 'socket'): void {
    this.#session?.complain(what === 'direct' ? refusals.notForwarded() : refusals.noSockets())
  }

  /** Called exactly once, as the last call. */
  closed(reason: string): void {
    this.#session?.left(reason)
  }

  async #decide(login: LoginAttempt): Promise<void> {
    // Clients ask first which methods there are.
    if (login.method === 'none' && !this.#hasAskedMethods) {
      this.#hasAskedMethods = true
      login.reject()
      return
    }
    if (!login.offer) this.#refuse(login, refusals.keysOnly())
    else if (!isUsable(login.offer)) this.#refuse(login, refusals.weakKey(login.offer.type))
    else await this.#decideKey(login, login.offer)
  }

  async #decideKey(login: LoginAttempt, offer: KeyOffer): Promise<void> {
    const { context, peer, link, trial } = this.#options
    const fingerprint = fingerprintOf(offer.blob)
    if (offer.proof && !isProven(offer)) {
      this.#refuse(login, refusals.unknownKey(fingerprint))
      return
    }
    let entry: Entry | BindRefusal
    try {
      entry = await this.#entryOf(login, offer, fingerprint)
    } catch (error) {
      context.log.warn({ error }, 'credential cannot be looked up')
      trial.failed('the database is away', { isFault: false })
      link.disconnect(refusalText(refusals.storeAway()), 'service')
      return
    }
    if (entry instanceof BindRefusal) this.#refuse(login, entry)
    else if (!offer.proof) this.#encourage(login, fingerprint)
    else if (context.admits?.(peer) === false) {
      // The restriction was added while this client was logging in.
      trial.failed('an IP restriction does not admit its address', { isFault: false })
      link.disconnect(refusalText(refusals.addressRestricted()), 'login')
    } else {
      this.#entry = entry
      this.#user = login.user
      login.accept()
    }
  }

  /**
   * Each question costs a lookup and needs only the public key, so questions are counted; a client that holds the key proves it
   * next.
   */
  #encourage(login: LoginAttempt, fingerprint: string): void {
    if (++this.#encouraged > this.#options.context.limits.tries) this.#refuse(login, refusals.notProven(fingerprint))
    else login.encourage()
  }

  async #entryOf({ user }: LoginAttempt, offer: KeyOffer, fingerprint: string): Promise<Entry | BindRefusal> {
    const { context, peer } = this.#options
    if (isCertificate(offer)) return entryBy({ blob: offer.blob, user, ip: peer.ip }, context)
    const credential = await context.credentials.find(fingerprint)
    return credential ? { credential } : refusals.unknownKey(fingerprint)
  }

  #refuse(login: LoginAttempt, refusal: BindRefusal): void {
    const { link, trial, context } = this.#options
    // Only once: a client may have many keys and offer one after the other.
    if (!this.#isRefusalShown) link.banner(refusalText(refusal))
    this.#isRefusalShown = true
    if (++this.#failures < context.limits.tries) {
      // A client that leaves after five wrong keys and comes back must count as failed too.
      trial.blame(`${this.#failures} logins failed`)
      login.reject()
      return
    }
    const lateMs = trial.failed(`${this.#failures} logins failed`, { isFault: true })
    const end = (): void => link.disconnect(refusalText(refusals.tooManyKeys(context.limits.tries)), 'login')
    if (lateMs > 0) setTimeout(end, lateMs).unref()
    else end()
  }

  /** Looks again for the credential: if it was deleted during the login, nothing else would end this new session (D25). */
  async #checkAgain(session: SshSession, { certificate }: Entry): Promise<void> {
    const { online, credentials, log } = this.#options.context
    try {
      if (!(await online.currentCredential(session.credentialId))) session.end('its credential was deleted')
      else if (certificate && !(await credentials.certificate(certificate.digest))) {
        session.end('its SSH certificate was deleted')
      }
    } catch (error) {
      log.warn({ session: session.id, error }, 'credential cannot be looked up')
    }
  }
}
