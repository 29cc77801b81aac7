/** Keeps logins in the memory of this process. */

import type { Login, LoginOrigin, LoginOwner, LoginScope, LoginSessions, UsedAnswer } from '../../model/logins.ts'
import { browserOf } from './browser-digest.ts'

/** How many browsers are remembered; the least recently seen is forgotten first. */
const MAX_BROWSERS = 100_000

/** How many used answers are remembered; the first is forgotten first. */
const MAX_ANSWERS = 100_000

export class MemorySessions implements LoginSessions {
  /** By browser and host, and then by route. The most recently seen browser comes last. */
  readonly #browsers = new Map<string, Map<string, Login>>()
  /** Keys of answers that were used. */
  readonly #answers = new Set<string>()

  find(scope: LoginScope): Login | undefined {
    return this.#browsers.get(browserOf(scope))?.get(scope.routeId)
  }

  begin(scope: LoginScope, login: Login, _origin?: LoginOrigin, before?: string): Promise<void> {
    const key = browserOf(scope)
    const keyBefore = browserOf({ secret: before ?? scope.secret, host: scope.host })
    const logins = this.#browsers.get(keyBefore) ?? new Map<string, Login>()
    logins.set(scope.routeId, login)
    this.#browsers.delete(keyBefore)
    this.#browsers.delete(key)
    this.#browsers.set(key, logins)
    const [oldest] = this.#browsers.keys()
    if (this.#browsers.size > MAX_BROWSERS && oldest !== undefined) this.#browsers.delete(oldest)
    return Promise.resolve()
  }

  seen(scope: LoginScope, at: number): void {
    this.#change(scope, (login) => ({ ...login, lastSeenAt: at }))
  }

  renew(scope: LoginScope, login: Login): Promise<void> {
    this.#change(scope, () => login)
    return Promise.resolve()
  }

  end(scope: Pick<LoginScope, 'secret' | 'host'>): Promise<void> {
    this.#browsers.delete(browserOf(scope))
    return Promise.resolve()
  }

  endUser({ identity, userId }: LoginOwner, routeId: string, asked: UsedAnswer): Promise<boolean> {
    if (!this.#isFirst(asked)) return Promise.resolve(false)
    for (const logins of this.#browsers.values()) {
      const login = logins.get(routeId)
      if (login?.identity === identity && login.user.id === userId) logins.delete(routeId)
    }
    return Promise.resolve(true)
  }

  useAnswer(answer: UsedAnswer): Promise<boolean> {
    return Promise.resolve(this.#isFirst(answer))
  }

  #isFirst({ key }: UsedAnswer): boolean {
    if (this.#answers.has(key)) return false
    this.#answers.add(key)
    const [first] = this.#answers
    if (this.#answers.size > MAX_ANSWERS && first !== undefined) this.#answers.delete(first)
    return true
  }

  #change(scope: LoginScope, change: (login: Login) => Login): void {
    const key = browserOf(scope)
    const logins = this.#browsers.get(key)
    const login = logins?.get(scope.routeId)
    if (!logins || !login) return
    logins.set(scope.routeId, change(login))
    this.#browsers.delete(key)
    this.#browsers.set(key, logins)
  }
}
