/** The clouds of Azure: their endpoints for sign-in and for resource management. */

export interface Cloud {
  readonly authority: string;
  readonly resourceManager: string;
}

const PUBLIC: Cloud = {
  authority: "https://login.microsoftonline.com",
  resourceManager: "https://management.azure.com",
};

const CLOUDS: Readonly<Record<string, Cloud>> = {
  AZURECLOUD: PUBLIC,
  AZUREPUBLICCLOUD: PUBLIC,
  AZURECHINACLOUD: {
    authority: "https://login.chinacloudapi.cn",
    resourceManager: "https://management.chinacloudapi.cn",
  },
  AZUREUSGOVERNMENT: {
    authority: "https://login.microsoftonline.us",
    resourceManager: "https://management.usgovcloudapi.net",
  },
  AZUREUSGOVERNMENTCLOUD: {
    authority: "https://login.microsoftonline.us",
    resourceManager: "https://management.usgovcloudapi.net",
  },
};

export const PUBLIC_CLOUD = "AzurePublicCloud";

/** Finds a cloud by name, ignoring case. */
export function cloudNamed(name: string): Cloud | undefined {
  return CLOUDS[name.toUpperCase()];
}

/** Whether the URL is the sign-in endpoint of one of these clouds. */
export function isAuthority(url: string): boolean {
  return Object.values(CLOUDS).some(({ authority }) => url.replace(/\/$/, "") === authority);
}
