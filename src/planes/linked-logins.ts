/** Logins of visitors over a link: what a data plane asks, and what the control plane answers. */
import type { CallLink, Calls } from './call-link.ts'
import type { LoginRows } from './login-rows.ts'

/** The logins at the other end of `link()`, which may be another link after the control plane was away. */
export function linkedLogins(link: () => Pick<CallLink<LoginRows, Calls>, 'ask'>): LoginRows {
  return {
    loginAt: (at) => link().ask('loginAt', at),
    beginLogin: (begun) => link().ask('beginLogin', begun, { isOnce: true }),
    renewLogin: (renewed) => link().ask('renewLogin', renewed, { isOnce: true }),
    endBrowser: (browser) => link().ask('endBrowser', browser),
    // A repetition would find that an answer was used, by the call before it.
    endLoginsOf: (user) => link().ask('endLoginsOf', user, { isOnce: true }),
    useAnswer: (answer) => link().ask('useAnswer', answer, { isOnce: true }),
    seenLogins: (seen) => link().ask('seenLogins', seen),
  }
}

/** What answers them: functions that a link can call by their name alone. */
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
