/** `oauth`: lets in visitors who logged in with one of the well-known providers. */
import { Type } from '../../../../lib/shape/type.ts'
import { defineAction } from '../action.ts'
import { checkLogin, loginFields, loginSettings, loginStep, oauthProviderNames } from '../openid-form.ts'
import { closedObject } from '../phase-settings.ts'

export const oauth = defineAction({
  phases: ['request'],
  guards: true,
  admits: true,
  config: closedObject({
    provider: Type.Enum([...oauthProviderNames], { description: 'Provider with which visitors log in.' }),
    ...loginFields,
  }),
  refine: checkLogin,
  loginName,
  compile: (config, { tools }) => {
    const { provider } = config
    const settings = loginSettings(config, loginName(config))
    return loginStep(tools.guards.oauth({ ...settings, provider }), ['oauth'], settings)
  },
})

function loginName({ auth_id, provider }: { auth_id?: string; provider: string }): string {
  return auth_id ?? provider
}
