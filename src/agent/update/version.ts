/** Versions of releases: three numbers, compared as such. */

type Version = readonly [major: number, minor: number, patch: number]

/** Undefined for anything but a release, such as a preview. */
export function parseVersion(text: string): Version | undefined {
  const [, major, minor, patch] = /^(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})$/.exec(text) ?? []
  return major === undefined ? undefined : [Number(major), Number(minor), Number(patch)]
}

/** Whether `a` is a later release than `b`, of the same major version; false when either is not a release. */
export function isUpdate(a: string, b: string): boolean {
  const [later, earlier] = [parseVersion(a), releaseOf(b)]
  return later !== undefined && earlier !== undefined && later[0] === earlier[0] && compare(later, earlier) > 0
}

/** The latest of `versions`. */
export function latest(versions: readonly string[]): string | undefined {
  const known = versions.flatMap((text) => {
    const version = parseVersion(text)
    return version ? [{ text, version }] : []
  })
  return known.toSorted((a, b) => compare(b.version, a.version))[0]?.text
}

/** A preview counts as the release that it leads to. */
function releaseOf(text: string): Version | undefined {
  return parseVersion(text.replace(/[-+].*$/, ''))
}

function compare(a: Version, b: Version): number {
  return a[0] - b[0] || a[1] - b[1] || a[2] - b[2]
}
