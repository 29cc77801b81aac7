/** Google, with the groups of Google Workspace that a user is in. */
import { type AskProvider, field, listOf, type OAuthKind, textOf, userOfClaims } from '../kind.ts'

const GROUPS_SCOPE = 'https://www.googleapis.com/auth/cloud-identity.groups.readonly'
const GROUPS_URL = 'https://cloudidentity.googleapis.com/v1/groups/-/memberships:searchDirectGroups'

const EVERY_GROUP = 'cloudidentity.googleapis.com/groups.discussion_forum'

/** The most pages of groups that are read, with 200 groups each. */
const MAX_PAGES = 10

export const google: OAuthKind = {
  authorizeUrl: 'https://accounts.google.com/o/oauth2/v2/auth',
  tokenUrl: 'https://oauth2.googleapis.com/token',
  usesPkce: true,
  scopes: ({ groups }) => ['openid', 'email', 'profile', ...(groups ? [GROUPS_SCOPE] : [])],
  // An access token lasts for an hour. Only with this parameter does Google give a refresh token.
  params: ({ later }): Readonly<Record<string, string>> => (later ? { access_type: 'offline' } : {}),
  forced: { prompt: 'select_account' },
  async readProfile(ask, { groups }) {
    const user = userOfClaims(await ask('https://openidconnect.googleapis.com/v1/userinfo'))
    return { user, groups: groups && user.email !== '' ? await groupsOf(ask, user.email) : [] }
  },
}

async function groupsOf(ask: AskProvider, email: string): Promise<string[]> {
  const found: string[] = []
  // Quotes and backslashes are escaped, since they would end the string. The query must name a label; every group has this.
  const query = `member_key_id == '${email.replaceAll(/['\\]/g, '\\$&')}' && '${EVERY_GROUP}' in labels`
  let pageToken = ''
  for (let page = 0; page < MAX_PAGES; page++) {
    const params = new URLSearchParams({ query, pageSize: '200', ...(pageToken !== '' && { pageToken }) })
    const answer = await ask(`${GROUPS_URL}?${params.toString()}`)
    found.push(...listOf(field(answer, 'memberships')).map((each) => textOf(field(each, 'groupKey'), 'id')))
    const next = field(answer, 'nextPageToken')
    if (typeof next !== 'string' || next === '') break
    pageToken = next
  }
  return found
}
