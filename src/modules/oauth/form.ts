/** The `oauth` module: visitors of a route log in with one of the well-known providers. */
import type { Static } from 'typebox'
import { BadValue } from '../../lib/shape/check.ts'
import { Refusal } from '../../model/errors.ts'
import { type LoginConfig, loginFields, seconds } from '../login/login-form.ts'
import { defineModule, moduleForm } from '../module.ts'
import { checkPrice, checkProvider, type ProviderSettings, providers } from './providers.ts'

const form = moduleForm({
  provider: providers,
  ...loginFields,
  auth_check_interval: seconds(
    'Seconds after which the provider is asked again whether a visitor may still come in; 0: only at the login.',
  ),
})

export interface OAuthSettings extends LoginConfig, Omit<Static<typeof form>, 'enabled'> {
  /** Further parameters of the authorization request. */
  readonly params?: Readonly<Record<string, string>>
  /** Whether to find out and store a user's organizations and teams, for rules to read. */
  readonly keepsMemberships?: boolean
}

export const oauth = defineModule({
  name: 'oauth',
  about: 'Lets in visitors who logged in with a provider such as GitHub or Google, through your own application there.',
  at: { route: form },
  needs: () => 'http',
  // The client secret is a field of `provider`.
  secrets: ['provider'],
  accept: (config, { at }) => {
    const named = Object.entries(config.provider)
    const [one, another] = named
    if (another) throw several(at, named)
    if (one) {
      const [name, settings] = one
      if (config.enabled) requireApplication(`${at}provider.${name}.`, settings)
      checkProvider(`${at}provider.${name}.`, settings)
    } else if (config.enabled) {
      throw new Refusal('PROVIDER_MISSING', `\`${at}provider\` must name one provider, such as \`github\``, {
        field: `${at}provider`,
      })
    }
    return config
  },
  resolve: (config): OAuthSettings => config,
  price: ({ provider }) => Object.values(provider).reduce((price, settings) => price + checkPrice(settings), 0),
})

function several(at: string, named: readonly (readonly [string, unknown])[]): Refusal {
  const names = named.map(([name]) => `\`${name}\``).join(', ')
  return new Refusal('SEVERAL_PROVIDERS', `\`${at}provider\` must name one provider, not several: ${names}; keep one`, {
    field: `${at}provider`,
  })
}

/** this server has no application of its own at any provider to lend. D38: a disabled module may lack one. */
function requireApplication(at: string, { client_id, client_secret }: ProviderSettings): void {
  const missing = Object.entries({ client_id, client_secret }).filter(([, value]) => value === '')
  const [first] = missing
  if (!first) return
  const names = missing.map(([name]) => `\`${at}${name}\``).join(', ')
  throw new BadValue(
    `${at}${first[0]}`,
    'required',
    `an enabled \`oauth\` module needs ${names}, since visitors log in through your application at the provider; register one there, or disable the module`,
  )
}
