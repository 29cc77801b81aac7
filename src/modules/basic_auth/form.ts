/** The `basic_auth` module: visitors log in with a user name and a password. */
import { defineModule } from '../module.ts'

export interface BasicAuthSettings {
  readonly credentials: readonly { readonly username: string; readonly password: string }[]
  /** The name that browsers show at the login: plain ASCII. */
  readonly realm?: string
}

/** Only endpoints of agents use it. */
export const basicAuth = defineModule({
  name: 'basic_auth',
  about: 'Lets in requests with the user name and password of one of the credentials.',
  at: {},
  needs: () => 'http',
  // Agents give its settings as they are.
  resolve: (config) => config,
})
