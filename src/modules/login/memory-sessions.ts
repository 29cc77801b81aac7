/** Logins that this process alone remembers, and only while it runs. */
import { hash } from 'node:crypto'
import type { Login, LoginOrigin, LoginOwner, LoginPlace, LoginSessions } from './sessions.ts'

/** How many browsers are remembered; the least recently seen is forgotten first. */
const MAX_BROWSERS = 100_000

export class MemorySessions implements LoginSessions {
  /** By browser and host, and then by route. The most recently seen browser comes last. */
  readonly #browsers = new Map<string, Map<string, Login>>()

  find(place: LoginPlace): Login | undefined {
    return this.#browsers.get(browserOf(place))?.get(place.routeId)
  }

  begin(place: LoginPlace, login: Login, _origin?: LoginOrigin, before?: string): Promise<void> {
    const key = browserOf(place)
    const keyBefore = browserOf({ secret: before ?? place.secret, host: place.host })
    const logins = this.#browsers.get(keyBefore) ?? new Map<string, Login>()
    logins.set(place.routeId, login)
    this.#browsers.delete(keyBefore)
    this.#browsers.delete(key)
    this.#browsers.set(key, logins)
    const [oldest] = this.#browsers.keys()
    if (this.#browsers.size > MAX_BROWSERS && oldest !== undefined) this.#browsers.delete(oldest)
    return Promise.resolve()
  }

  seen(place: LoginPlace, at: number): void {
    this.#change(place, (login) => ({ ...login, lastSeenAt: at }))
  }

  renew(place: LoginPlace, login: Login): Promise<void> {
    this.#change(place, () => login)
    return Promise.resolve()
  }

  end(place: Pick<LoginPlace, 'secret' | 'host'>): Promise<void> {
    this.#browsers.delete(browserOf(place))
    return Promise.resolve()
  }

  endUser({ identity, userId }: LoginOwner, routeId: string): Promise<void> {
    for (const logins of this.#browsers.values()) {
      const login = logins.get(routeId)
      if (login?.identity === identity && login.user.id === userId) logins.delete(routeId)
    }
    return Promise.resolve()
  }

  #change(place: LoginPlace, change: (login: Login) => Login): void {
    const key = browserOf(place)
    const logins = this.#browsers.get(key)
    const login = logins?.get(place.routeId)
    if (!logins || !login) return
    logins.set(place.routeId, change(login))
    this.#browsers.delete(key)
    this.#browsers.set(key, logins)
  }
}

/** The key is a digest, so that the time of a lookup says nothing about existing secrets. */
function browserOf({ secret, host }: Pick<LoginPlace, 'secret' | 'host'>): string {
  return hash('sha256', `${host}\0${secret}`, 'base64url')
}
