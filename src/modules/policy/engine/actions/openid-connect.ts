/** `openid-connect`: lets in visitors who logged in with an OpenID Connect provider. */
import { defineAction } from '../action.ts'
import { checkLogin, loginFields, loginSettings, loginStep } from '../openid-form.ts'
import { badSetting, closedObject, text } from '../phase-settings.ts'
import { isTrustworthyUrl } from '../trustworthy-url.ts'

export const openidConnect = defineAction({
  phases: ['request'],
  guards: true,
  admits: true,
  config: closedObject({
    issuer_url: text(
      255,
      'URL of the provider, under which its discovery document is found. `https`, or `http` to loopback.',
    ),
    ...loginFields,
  }),
  refine: (config, at) => {
    checkLogin(config, at)
    // The pattern comes first, since the URL parser accepts spaces and backslashes, and drops an empty `?`, `#` or `@`.
    if (/[?#@\s\\]/.test(config.issuer_url) || !isTrustworthyUrl(config.issuer_url)) {
      throw badSetting(
        `${at}.issuer_url`,
        'must be an https URL without query, fragment and password; http is for loopback addresses only',
      )
    }
  },
  loginName,
  compile: (config, { tools }) => {
    const { issuer_url: issuer } = config
    const settings = loginSettings(config, loginName(config))
    return loginStep(tools.guards.oidc({ ...settings, issuer }), ['oidc', 'openid_connect'], settings)
  },
})

function loginName({ auth_id = 'oidc' }: { auth_id?: string }): string {
  return auth_id
}
