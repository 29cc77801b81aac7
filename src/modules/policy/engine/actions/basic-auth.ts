/** `basic-auth`: lets in requests with the user name and password of one of the credentials. */
import { Type } from '../../../../lib/shape/type.ts'
import { defineAction, guardStep } from '../action.ts'
import { badSetting, closedObject, enforce } from '../phase-settings.ts'

export const basicAuth = defineAction({
  phases: ['request'],
  guards: true,
  admits: true,
  config: closedObject({
    credentials: Type.Array(Type.String({ maxBytes: 384 }), {
      minItems: 1,
      maxItems: 10,
      description: 'Who may enter, each as `user:password`; a password has 8 to 128 bytes.',
    }),
    realm: Type.String({ default: 'postern', maxBytes: 128, description: 'What the login prompt names.' }),
    enforce,
  }),
  refine: ({ credentials, realm }, at) => {
    for (const [i, credential] of credentials.entries()) checkCredential(credential, `${at}.credentials[${i}]`)
    if (!/^[\x20-\x7e]*$/.test(realm)) throw badSetting(`${at}.realm`, 'must be plain ASCII text')
  },
  compile: ({ credentials, realm, enforce: isEnforced }, { tools }) => {
    const known = credentials.map((credential) => {
      const colon = credential.indexOf(':')
      return { username: credential.slice(0, colon), password: credential.slice(colon + 1) }
    })
    return guardStep('basic-auth', tools.guards.basicAuth({ credentials: known, realm }), isEnforced)
  },
})

function checkCredential(credential: string, at: string): void {
  const colon = credential.indexOf(':')
  const password = Buffer.byteLength(credential.slice(colon + 1))
  if (colon < 1) throw badSetting(at, 'must be `user:password`')
  if (password < 8 || password > 128) throw badSetting(at, 'must have a password of 8 to 128 bytes')
}
