/** Visitor logins over a link: the calls of a data plane, and their handlers in the control plane. */
import type { CallLink, Calls } from '../calls/call-link.ts'
import type { LoginRows } from './login-store.ts'

/** The logins at the other end of `link()`, which may be a new link after the control plane was away. */
export function linkedLogins(link: () => Pick<CallLink<LoginRows, Calls>, 'ask'>): LoginRows {
  return {
    loginAt: (at) => link().ask('loginAt', at),
    beginLogin: (begun) => link().ask('beginLogin', begun, { isOnce: true }),
    renewLogin: (renewed) => link().ask('renewLogin', renewed, { isOnce: true }),
    endBrowser: (browser) => link().ask('endBrowser', browser),
    // A repetition of these two calls would find that the first call has used the answer.
    endLoginsOf: (user) => link().ask('endLoginsOf', user, { isOnce: true }),
    useAnswer: (answer) => link().ask('useAnswer', answer, { isOnce: true }),
    seenLogins: (seen) => link().ask('seenLogins', seen),
  }
}

/** The handlers of these calls, as plain functions that a link can call by name. */
export function loginCalls(rows: LoginRows): LoginRows {
  return {
    loginAt: (at) => rows.loginAt(at),
    beginLogin: (begun) => rows.beginLogin(begun),
    renewLogin: (renewed) => rows.renewLogin(renewed),
    endBrowser: (browser) => rows.endBrowser(browser),
    endLoginsOf: (user) => rows.endLoginsOf(user),
    useAnswer: (answer) => rows.useAnswer(answer),
    seenLogins: (seen) => rows.seenLogins(seen),
  }
}
