/** The `basic_auth` module: visitors log in with a user name and a password. Only endpoints of agents use it. */
import { defineModule } from '../module.ts'
import { compileBasicAuth } from './traffic.ts'

export const basicAuth = defineModule({
  name: 'basic_auth',
  about: 'Lets in requests with the user name and password of one of the credentials.',
  at: {},
  needs: () => 'http',
  compile: compileBasicAuth,
})
