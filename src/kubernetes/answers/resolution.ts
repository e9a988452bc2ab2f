/** What the cluster knows of a name and type. */
import type { Name } from "../../dns/name.ts";
import type { ResourceRecord } from "../../dns/record-kind.ts";

export interface Resolution {
  /** False for NXDOMAIN. It depends on the name alone and never on the type. */
  readonly exists: boolean;
  /** Empty for NODATA. */
  readonly answer: readonly ResourceRecord[];
  readonly additional: readonly ResourceRecord[];
  /** The name is an alias of this one, and the question does not end here. */
  readonly alias: Name | undefined;
}

const NO_RECORDS: readonly ResourceRecord[] = [];

export function answered(
  answer: readonly ResourceRecord[],
  additional: readonly ResourceRecord[] = NO_RECORDS,
): Resolution {
  return answer.length === 0 ? NO_DATA : { exists: true, answer, additional, alias: undefined };
}

export function aliasOf(target: Name): Resolution {
  return { exists: true, answer: NO_RECORDS, additional: NO_RECORDS, alias: target };
}

function empty(exists: boolean): Resolution {
  return { exists, answer: NO_RECORDS, additional: NO_RECORDS, alias: undefined };
}

// Why there is no answer. People who follow a query get more words than this: see why-not.ts.

/** The name has no records of this type. */
export const NO_DATA: Resolution = empty(true);
/** No known address is this one, but some begin like it: the name has others below it and no records (RFC 8020). */
export const BEGINNING_OF_ADDRESSES: Resolution = empty(true);
/** No object of a cluster has a name of this form. */
export const NO_SUCH_FORM: Resolution = empty(false);
/** The namespace does not exist, or is not selected. */
export const NO_NAMESPACE: Resolution = empty(false);
/** No such service in this namespace. */
export const NO_SERVICE: Resolution = empty(false);
/** The service has no cluster address yet. */
export const NO_CLUSTER_ADDRESS: Resolution = empty(false);
/** The service's external name is not a host name. */
export const NO_EXTERNAL_NAME: Resolution = empty(false);
/** The service has no endpoint that is ready, and empty services are ignored. */
export const EMPTY_SERVICE: Resolution = empty(false);
/** The headless service has no endpoint that is ready. */
export const NO_READY_ENDPOINT: Resolution = empty(false);
/** The service has no endpoint of this name that is ready. */
export const NO_SUCH_ENDPOINT: Resolution = empty(false);
/** The service has no port of this name and protocol. */
export const NO_SUCH_PORT: Resolution = empty(false);
/** Nothing exists below the name of an ExternalName service. */
export const BELOW_ALIAS: Resolution = empty(false);
/** Only a headless service has zonal names. */
export const NOT_HEADLESS: Resolution = empty(false);
/** Pod names are switched off. */
export const NO_PODS: Resolution = empty(false);
/** The label is not an address. */
export const NOT_AN_ADDRESS: Resolution = empty(false);
/** No running pod of this namespace has this address. */
export const NO_SUCH_POD: Resolution = empty(false);
/** No service and no endpoint that is ready has this address. */
export const NO_SUCH_ADDRESS: Resolution = empty(false);
/** The service has no address outside of the cluster. */
export const NO_EXTERNAL_ADDRESS: Resolution = empty(false);
