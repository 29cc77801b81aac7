/** Google, with the groups of Google Workspace that a user is in. */
import { type Ask, field, listOf, type OAuthKind, textOf, userOfClaims } from '../kind.ts'

const GROUPS_SCOPE = 'https://www.googleapis.com/auth/cloud-identity.groups.readonly'
const GROUPS_URL = 'https://cloudidentity.googleapis.com/v1/groups/-/memberships:searchDirectGroups'

const EVERY_GROUP = 'cloudidentity.googleapis.com/groups.discussion_forum'

/** Pages of groups that are read at most, of 200 each. */
const MAX_PAGES = 10

export const google: OAuthKind = {
  authorizeUrl: 'https://accounts.google.com/o/oauth2/v2/auth',
  tokenUrl: 'https://oauth2.googleapis.com/token',
  usesPkce: true,
  scopes: ({ groups }) => ['openid', 'email', 'profile', ...(groups ? [GROUPS_SCOPE] : [])],
  // An access token lives for an hour; only with this is there a way to get the next one.
  params: ({ later }): Readonly<Record<string, string>> => (later ? { access_type: 'offline' } : {}),
  forced: { prompt: 'select_account' },
  async readProfile(ask, { groups }) {
    const user = userOfClaims(await ask('https://openidconnect.googleapis.com/v1/userinfo'))
    return { user, groups: groups && user.email !== '' ? await groupsOf(ask, user.email) : [] }
  },
}

async function groupsOf(ask: Ask, email: string): Promise<string[]> {
  const found: string[] = []
  // Quotes and backslashes would end the text of the query, which must name a label; every group has this one.
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
