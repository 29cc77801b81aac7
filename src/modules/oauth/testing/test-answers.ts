/** For tests: GitHub, Google and the others behind `fetch`, answering as their documentation shows. */
import { createHash } from 'node:crypto'
import { type Fetch, type FetchAnswer, FetchFault, type FetchRequest } from '../../../lib/http/outbound-fetch.ts'

interface Asked {
  readonly url: URL
  readonly request: FetchRequest
}

/** By host and path; a list comes page by page. */
type Answers = Record<string, unknown>

const CODE = 'code-1'

export class TestOAuth {
  readonly asked: Asked[] = []
  answers: Answers
  isDown = false
  /** Valid access tokens. */
  accepted = new Set(['access-1'])
  tokenAnswer: unknown = { access_token: 'access-1', token_type: 'bearer', scope: 'x' }
  /** What a refresh token is exchanged for. */
  refreshAnswer: unknown = { error: 'invalid_grant' }
  readonly #tokenUrl: string
  #challenge = ''

  constructor(tokenUrl: string, answers: Answers) {
    this.#tokenUrl = tokenUrl
    this.answers = answers
  }

  readonly fetch: Fetch = (given, request = {}) => {
    const url = new URL(given)
    this.asked.push({ url, request })
    if (this.isDown) return Promise.reject(new FetchFault('unreachable', `${url.host} cannot be asked`))
    if (url.href === this.#tokenUrl) return Promise.resolve(this.#exchange(request))
    const token = request.headers?.authorization?.replace('Bearer ', '') ?? ''
    if (!this.accepted.has(token)) return Promise.resolve(json({ message: 'Bad credentials' }, 401))
    const answer = this.answers[url.host + url.pathname]
    if (answer === undefined) return Promise.resolve(json({}, 404))
    return Promise.resolve(json(typeof answer === 'function' ? answer(url) : answer))
  }

  /** The user agrees; returns where the browser is sent back to. */
  authorize(location: string): string {
    const { searchParams } = new URL(location)
    this.#challenge = searchParams.get('code_challenge') ?? ''
    const back = new URL(searchParams.get('redirect_uri') ?? '')
    back.searchParams.set('code', CODE)
    back.searchParams.set('state', searchParams.get('state') ?? '')
    return back.pathname + back.search
  }

  #exchange({ body }: FetchRequest): FetchAnswer {
    const form = new URLSearchParams(String(body))
    if (form.get('client_id') !== 'app' || form.get('client_secret') !== 'hush-hush')
      return json({ error: 'invalid_client' }, 401)
    if (form.get('grant_type') === 'refresh_token') return json(this.refreshAnswer)
    const verifier = form.get('code_verifier')
    const challenge = verifier === null ? '' : createHash('sha256').update(verifier).digest('base64url')
    // Like GitHub, with a 200.
    if (form.get('code') !== CODE || challenge !== this.#challenge) return json({ error: 'bad_verification_code' })
    return json(this.tokenAnswer)
  }
}

function json(body: unknown, status = 200): FetchAnswer {
  return {
    status,
    headers: new Headers({ 'content-type': 'application/json' }),
    body: Buffer.from(JSON.stringify(body)),
  }
}

/** The answers to one user of each provider, who has the verified address `ada@example.com`. */
export const ada: Readonly<Record<string, { readonly tokenUrl: string; readonly answers: Answers }>> = {
  amazon: {
    tokenUrl: 'https://api.amazon.com/auth/o2/token',
    answers: {
      'api.amazon.com/user/profile': {
        user_id: 'amzn1.account.K2',
        name: 'Ada',
        email: 'ada@example.com',
        postal_code: '98101',
      },
    },
  },
  facebook: {
    tokenUrl: 'https://graph.facebook.com/v21.0/oauth/access_token',
    answers: { 'graph.facebook.com/v21.0/me': { id: '1042', name: 'Ada', email: 'ada@example.com' } },
  },
  github: {
    tokenUrl: 'https://github.com/login/oauth/access_token',
    answers: {
      'api.github.com/user': { login: 'ada', id: 1, name: 'Ada', email: 'written-down@example.org', type: 'User' },
      'api.github.com/user/emails': [
        { email: 'boss@evil.test', verified: false, primary: false, visibility: null },
        { email: 'ada@example.com', verified: true, primary: true, visibility: 'public' },
      ],
      'api.github.com/user/orgs': [{ login: 'Acme', id: 7, url: 'https://api.github.com/orgs/Acme' }],
      'api.github.com/user/teams': [{ id: 12, slug: 'web', name: 'Web!', organization: { login: 'Acme', id: 7 } }],
    },
  },
  gitlab: {
    tokenUrl: 'https://gitlab.com/oauth/token',
    answers: {
      'gitlab.com/api/v4/user': {
        id: 1,
        username: 'ada',
        name: 'Ada',
        email: 'ada@example.com',
        confirmed_at: '2012-05-23T09:05:22.000Z',
      },
    },
  },
  google: {
    tokenUrl: 'https://oauth2.googleapis.com/token',
    answers: {
      'openidconnect.googleapis.com/v1/userinfo': {
        sub: '110169484474386276334',
        name: 'Ada',
        email: 'ada@example.com',
        email_verified: true,
        hd: 'example.com',
      },
      'cloudidentity.googleapis.com/v1/groups/-/memberships:searchDirectGroups': (url: URL) =>
        url.searchParams.get('pageToken') === null
          ? { memberships: [{ groupKey: { id: 'all@example.com' }, group: 'groups/1' }], nextPageToken: 'next' }
          : { memberships: [{ groupKey: { id: 'Team@example.com' }, group: 'groups/2' }] },
    },
  },
  linkedin: {
    tokenUrl: 'https://www.linkedin.com/oauth/v2/accessToken',
    answers: {
      'api.linkedin.com/v2/userinfo': {
        sub: '782bbtaQ',
        name: 'Ada',
        email: 'ada@example.com',
        email_verified: 'true',
      },
    },
  },
  microsoft: {
    tokenUrl: 'https://login.microsoftonline.com/common/oauth2/v2.0/token',
    answers: {
      'graph.microsoft.com/v1.0/me': {
        id: '48d3',
        displayName: 'Ada',
        mail: 'boss@evil.test',
        userPrincipalName: 'Ada@example.com',
      },
    },
  },
  twitch: {
    tokenUrl: 'https://id.twitch.tv/oauth2/token',
    answers: {
      'api.twitch.tv/helix/users': {
        data: [{ id: '141981764', login: 'ada', display_name: 'Ada', email: 'ada@example.com' }],
      },
    },
  },
}
