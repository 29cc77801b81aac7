/** An identity provider as logins see it: a signed request by the redirect binding, and an answer by the POST binding. */
import { clientKeyOf } from '../../lib/net/client-key.ts'
import { digestOf, isFault, type LoginProvider } from '../login/login-provider.ts'
import type { RequestContext } from '../phases.ts'
import type { ModuleTools } from '../tools.ts'
import { assertionConsumer, requestIdOf } from './acs.ts'
import { addressesBeside, addressesOf, paths } from './addresses.ts'
import type { SamlSettings } from './form.ts'
import { identityProvider } from './identity-provider.ts'
import { logoutPages } from './logout.ts'
import { loginRequestUrl, ownMetadata } from './messages.ts'
import { asDown } from './saml-faults.ts'

export function samlProvider(settings: SamlSettings, tools: ModuleTools): LoginProvider {
  const { idp_metadata, idp_metadata_url, force_authn, authorized_groups, nameid_format: nameIdFormat } = settings
  const { now, requestKey, owner } = tools
  const provider = identityProvider(settings, tools)
  const identity = digestOf(['saml', idp_metadata_url || writtenEntityId(idp_metadata), nameIdFormat])
  const rules = authorized_groups.length > 0 ? digestOf(authorized_groups) : ''
  const parts = {
    provider,
    sharerOf: ({ peer }: RequestContext) => ({ owner, source: clientKeyOf(peer.ip) }),
  }
  const acs = assertionConsumer(settings, { ...parts, seal: `${identity} ${rules}` }, tools)

  return {
    name: 'saml',
    clientId: '',
    identity,
    rules,
    checkEveryMs: 0,
    callbackPaths: [paths.acs],
    variables: ({ id }) => [['saml.subject', id]],
    pages: [
      ...acs.pages,
      {
        path: paths.metadata,
        methods: ['GET', 'HEAD'],
        async answer(ctx) {
          const { certificate } = await requestKey()
          const body = ownMetadata({ addresses: addressesOf(ctx), certificate, nameIdFormat })
          return { respond: { status: 200, headers: metadataHeaders, body } }
        },
      },
      ...logoutPages(parts, tools),
    ],

    async begin({ state, redirectUri, isForced }) {
      const idp = await provider().catch(asDown)
      if (isFault(idp)) return idp
      const addresses = addressesBeside(redirectUri)
      const sending = { to: idp.loginUrl, addresses, requestKey: await requestKey(), relayState: state, now: now() }
      const request = { id: requestIdOf(state), nameIdFormat, isForced: isForced || force_authn }
      return { location: await loginRequestUrl(sending, request), kept: {} }
    },

    finish: ({ state, params }) => acs.finish(params.get('answer') ?? '', state),

    /** SAML has no way to ask about a user later, so the visitor must log in again. */
    check: () => Promise.resolve({ fault: 'log_in_again', reason: 'the authorized groups changed' }),
  }
}

const metadataHeaders = [
  ['Content-Type', 'application/samlmetadata+xml'],
  ['Cache-Control', 'no-cache'],
  ['X-Content-Type-Options', 'nosniff'],
] as const

/** Only for a digest; the document is checked when it is read. */
function writtenEntityId(metadata: string): string {
  return /\sentityID\s*=\s*(["'])(.*?)\1/s.exec(metadata)?.[2] ?? ''
}
